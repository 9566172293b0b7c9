import { mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { bundled } from "./bundle.mjs";
import { BUILD, CHECKOUT } from "./checkout.mjs";
import { filesBelow, filesIn } from "./fingerprint.mjs";
import { lastLines, run } from "./programs.mjs";
import { SetUpError, say } from "./say.mjs";
import { writeWhole } from "./stamp.mjs";

const FOLDER = join(BUILD, "client");

/** What a declaration may use; the checkout's own tsconfig.json names every folder. */
const DECLARATIONS = [
  ...["--ignoreConfig", "--declaration", "--emitDeclarationOnly", "--strict", "--skipLibCheck"],
  ...["--target", "es2023", "--lib", "es2023", "--module", "nodenext", "--types", "node"],
  ...["--allowImportingTsExtensions", "--exactOptionalPropertyTypes"],
];

/**
 * Makes `.build/client`: modules and declarations of what programs import from the package. Neither the broker nor the CLI uses them.
 */
export async function makeClient() {
  rmSync(FOLDER, { recursive: true, force: true });
  const entryPoints = [join(CHECKOUT, "api/client/index.ts"), ...filesIn("api/adapters", [".ts"])];
  const names = { entryNames: "[dir]/[name]", chunkNames: "chunk-[hash]", outbase: join(CHECKOUT, "api") };
  for (const file of await bundled({ entryPoints, outdir: FOLDER, sourcemap: false, ...names })) {
    mkdirSync(dirname(file.path), { recursive: true });
    writeWhole(file.path, file.contents);
  }
  const words = [...DECLARATIONS, "--rootDir", CHECKOUT, "--outDir", join(FOLDER, "types"), ...entryPoints];
  const tsc = await run([process.execPath, join(CHECKOUT, "node_modules/typescript/bin/tsc"), ...words]);
  if (!tsc.ok) throw new SetUpError(`Cannot write the client's declarations:\n${lastLines(tsc.tail, 20)}`);
  say("built .build/client");
}

/** @returns {string[]} relative to `.build` */
export function clientFiles() {
  return filesBelow(".build/client", [".mjs", ".d.ts"]).map((path) => path.slice(BUILD.length + 1));
}
