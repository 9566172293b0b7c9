import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder that holds package.json. */
export const CHECKOUT = resolve(fileURLToPath(new URL("../..", import.meta.url)));

/** Everything that set-up makes, apart from node_modules. Git ignores it. */
export const BUILD = join(CHECKOUT, ".build");
