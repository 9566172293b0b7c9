import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { BUILD, CHECKOUT } from "./checkout.mjs";
import { filesBelow, fingerprint } from "./fingerprint.mjs";
import { SetUpError, say } from "./say.mjs";
import { updateStamp, writeWhole } from "./stamp.mjs";

const FOLDERS = ["api", "broker", "world", "schemas", "lima", "shim"];
const ENTRY = join(CHECKOUT, "api/main.ts");
const KEEP_OLD_PARTS_MS = 24 * 60 * 60 * 1000;

/**
 * Code splitting keeps `import()` lazy: in a single file every subcommand would import every package.
 * The chunks lie beside the entry, so `import.meta.url` names the same folder everywhere.
 * Packages are bundled too: resolving and reading their 600 files is a quarter of a broker's start. An agent may write the
 * `node_modules` of a project, so no program of this package may load another package from there: `npm i` in a project puts the
 * package into that folder. LMDB's native part lies in `.build/prebuilds` (prebuilds.mjs).
 */
const OPTIONS = /** @satisfies {import("esbuild").BuildOptions} */ ({
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node20",
  // The CommonJS part of jsonc-parser calls a `require` that no bundler sees through. LMDB's ES modules, bundled, list keys without end
  // (a broker's second start); its CommonJS file works.
  alias: {
    "jsonc-parser": "jsonc-parser/lib/esm/main.js",
    lmdb: join(CHECKOUT, "node_modules/lmdb/dist/index.cjs"),
  },
  plugins: [absent()],
  // Packages written as CommonJS call `require` for Node's own modules, and LMDB finds its native part beside `__filename`.
  banner: {
    js: 'import { createRequire as createRequireOf } from "node:module"; const require = createRequireOf(import.meta.url), __filename = import.meta.filename;',
  },
  sourcemap: true,
  entryNames: "substrate",
  chunkNames: "substrate-[hash]",
  outExtension: { ".js": ".mjs" },
  logLevel: "silent",
});

/**
 * Makes a `require` of an optional package that is not installed throw here: left as it is, the package would be looked for when the
 * broker runs. msgpackr-extract is a native part that would be loaded from its own folder.
 * @returns {import("esbuild").Plugin}
 */
function absent() {
  return {
    name: "absent",
    setup(build) {
      build.onResolve({ filter: /^[^./]/ }, async ({ path, kind, resolveDir, pluginData }) => {
        if (kind !== "require-call" || pluginData === absent) return undefined;
        const found =
          path === "msgpackr-extract"
            ? undefined
            : await build.resolve(path, { kind, resolveDir, pluginData: absent });
        return found?.errors.length === 0 ? found : { path, namespace: "absent" };
      });
      build.onLoad({ filter: /^/, namespace: "absent" }, ({ path }) => ({
        contents: `throw Object.assign(new Error("'${path}' is left out"), { code: "MODULE_NOT_FOUND" });`,
      }));
    },
  };
}

/** Step: `.build/substrate.mjs`, the CLI and the broker. */
export const bundle = {
  /** @param {import("./stamp.mjs").Stamp} stamp */
  isCurrent({ bundle: made }) {
    return (
      made !== undefined &&
      made.inputs === inputs() &&
      made.files.every((file) => existsSync(join(BUILD, file)))
    );
  },

  async make() {
    const made = inputs();
    const files = await bundleInto(BUILD, ENTRY);
    removeOthers(files);
    updateStamp({ bundle: { inputs: made, files } });
    say("built .build/substrate.mjs");
  },
};

/**
 * Bundles an entry. Throws with esbuild's message on errors.
 * @param {string} folder output folder
 * @param {string} entry
 * @returns {Promise<string[]>} the names of the files written
 */
export async function bundleInto(folder, entry) {
  const outputFiles = await bundled({ entryPoints: [entry], outdir: folder });
  // Write the entry last: a concurrent start then finds all chunks.
  const parts = outputFiles.filter((file) => basename(file.path) !== "substrate.mjs");
  const entries = outputFiles.filter((file) => basename(file.path) === "substrate.mjs");
  for (const file of [...parts, ...entries]) writeWhole(file.path, file.contents);
  return outputFiles.map((file) => basename(file.path));
}

/**
 * Bundles without writing. Throws with esbuild's message on errors.
 * @param {import("esbuild").BuildOptions} options added to those of the CLI
 * @returns {Promise<import("esbuild").OutputFile[]>}
 */
export async function bundled(options) {
  const { build } = await import("esbuild").catch((/** @type {unknown} */ error) => {
    throw new SetUpError(`Cannot load esbuild. Run 'npm start', or 'npm ci' alone: ${String(error)}`);
  });
  const { outputFiles } = await build({
    ...OPTIONS,
    absWorkingDir: CHECKOUT,
    ...options,
    write: false,
  }).catch((/** @type {unknown} */ error) => {
    throw new SetUpError(error instanceof Error ? error.message : String(error));
  });
  return outputFiles;
}

/**
 * Removes chunks of older bundles after a day: a running broker may still import an old chunk.
 * @param {readonly string[]} files
 */
function removeOthers(files) {
  const parts = readdirSync(BUILD).filter((name) => /^substrate-[A-Z0-9]{8}\.mjs(\.map)?$/.test(name));
  for (const path of parts.filter((name) => !files.includes(name)).map((name) => join(BUILD, name))) {
    if (Date.now() - statSync(path).mtimeMs > KEEP_OLD_PARTS_MS) rmSync(path, { force: true });
  }
}

function inputs() {
  const sources = FOLDERS.flatMap((folder) => filesBelow(folder, [".ts", ".js", ".json"]));
  return fingerprint([...sources, join(CHECKOUT, "package-lock.json")], [JSON.stringify(OPTIONS)]);
}
