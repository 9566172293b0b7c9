import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of package.json. */
export const CHECKOUT = resolve(fileURLToPath(new URL("../..", import.meta.url)));

/** Output folder of the set-up, ignored by git; only the npm packages and the validators lie elsewhere. */
export const BUILD = join(CHECKOUT, ".build");
