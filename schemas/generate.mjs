/**
 * Writes `schemas/generated/`, `world/native/lib/frames.h`, `policies/REFERENCE.md` and `api/REFERENCE.md` from the JSON Schemas in this folder.
 *
 *   node schemas/generate.mjs                write the files that differ
 *   node schemas/generate.mjs --check        write nothing; exit 1 and name the files in git that differ
 *   node schemas/generate.mjs --validators   write only the validators and `openapi.js`, which git ignores and the set-up makes
 */
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { readSchemas } from "./generator/documents.mjs";
import { framesHeader, framesModule } from "./generator/frames.mjs";
import { openapiModule } from "./generator/openapi.mjs";
import { apiReference, policiesReference } from "./generator/reference.mjs";
import { typesModule } from "./generator/types.mjs";
import { validatorsDeclaration, validatorsModules } from "./generator/validators.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

const schemas = await readSchemas(join(ROOT, "schemas"));
if (process.argv.includes("--check")) {
  report((await driftedFiles(await filesInGit())).map(([path]) => path));
} else if (process.argv.includes("--validators")) {
  await write(await driftedFiles(validators()));
} else {
  await write(await driftedFiles(new Map([...(await filesInGit()), ...validators()])));
}

/** The validators and the calls, not in git: 44,000 lines, rewritten by every change of a schema. */
function validators() {
  return new Map([
    ...[...validatorsModules(schemas)].map(
      ([name, text]) => /** @type {const} */ ([`schemas/generated/${name}`, text]),
    ),
    ["schemas/generated/openapi.js", openapiModule(schemas)],
  ]);
}

/**
 * Generated files by their paths below the repository.
 * @returns {Promise<Map<string, string>>}
 */
async function filesInGit() {
  return new Map([
    ["schemas/generated/types.ts", await typesModule(schemas)],
    ["schemas/generated/validators.d.ts", validatorsDeclaration(schemas)],
    ["schemas/generated/frames.ts", framesModule(schemas)],
    ["world/native/lib/frames.h", framesHeader(schemas)],
    ["policies/REFERENCE.md", policiesReference(schemas)],
    ["api/REFERENCE.md", apiReference(schemas)],
  ]);
}

/**
 * @param {Map<string, string>} wanted
 * @returns {Promise<[path: string, text: string][]>}
 */
async function driftedFiles(wanted) {
  /** @type {[string, string][]} */
  const drift = [];
  for (const [path, text] of wanted) {
    if ((await textOf(join(ROOT, path))) !== text) drift.push([path, text]);
  }
  return drift;
}

/**
 * @param {string} path
 * @returns {Promise<string | undefined>}
 */
async function textOf(path) {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/** @param {[path: string, text: string][]} files */
async function write(files) {
  for (const [path, text] of files) {
    const target = join(ROOT, path);
    await mkdir(dirname(target), { recursive: true });
    // Replace atomically: a concurrent build or test must not read half a file.
    await writeFile(`${target}.${process.pid}.tmp`, text);
    await rename(`${target}.${process.pid}.tmp`, target);
    console.log(`wrote ${path}`);
  }
}

/** @param {string[]} paths */
function report(paths) {
  if (paths.length === 0) return;
  for (const path of paths) console.error(`${path} differs from what the schemas say`);
  console.error("Run: node schemas/generate.mjs");
  process.exitCode = 1;
}
