import { existsSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";

/** Where this program's own files are. */
export type Installation = {
  readonly root: string;
  readonly version: string;
  readonly init: string;
  /** The program that stands for others on PATH. */
  readonly shim: string;
  /** The library that programs of worlds load to report of themselves. */
  readonly preload: string;
  /** What the build makes: a broker that is older runs other code. */
  readonly built: readonly string[];
  readonly policies: string;
  /** The launcher that starts this program again. */
  readonly launcher: string;
  /** What `npm start` and this program run, and what the build is made of: read-only in a world whose project is this folder. */
  readonly sealed: readonly string[];
};

/**
 * `npm start` builds anew what changed, and starts it. So a command that changes a source of a running checkout changes what its
 * person runs next; tests, documents and settings of the checkers are what is left to write.
 */
const RUNS = [
  ".build",
  ".npmrc",
  "api",
  "broker",
  "node_modules",
  "package-lock.json",
  "package.json",
  "policies",
  "schemas",
  "shim",
  "world",
] as const;

/** The installation below a folder. Throws when it is not complete. */
export function installationAt(folder: string): Installation {
  const root = realpathSync(folder);
  const init = join(root, ".build/substrate-init");
  if (!existsSync(init)) throw new Error(`'${init}' is missing. Run 'npm run build' in '${root}'`);
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
  return {
    root,
    version,
    init,
    shim: join(root, ".build/substrate-shim"),
    preload: join(root, ".build/substrate-preload.so"),
    built: [init, join(root, ".build/substrate.mjs")],
    policies: join(root, "policies"),
    launcher: join(root, "api/bin/substrate.mjs"),
    sealed: RUNS.map((name) => join(root, name)),
  };
}
