import { join } from "node:path";
import { build } from "esbuild";

/**
 * Makes one module that Node can load from a TypeScript file and what it imports, in the folder of built things.
 * @param {string} entry
 * @param {string} folder what `import.meta.dirname` is in it
 * @returns {Promise<string>} the module's path; the caller removes it
 */
export async function bundled(entry, folder) {
  const outfile = join(import.meta.dirname, `../../.build/corpus-${process.pid}.mjs`);
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    packages: "external",
    define: { "import.meta.dirname": JSON.stringify(folder) },
    logLevel: "error",
  });
  return outfile;
}
