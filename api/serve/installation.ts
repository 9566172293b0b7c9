import { existsSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";

/** Paths of the program's own files. */
export type Installation = {
  readonly root: string;
  readonly version: string;
  readonly init: string;
  /** The program for people, shells and agents' settings: native on Linux, elsewhere the launcher. */
  readonly front: string;
  /** The same as a shell. */
  readonly shell: string;
  /** Binary of the shims on PATH. */
  readonly shim: string;
  /** Telemetry library loaded into a world's programs. */
  readonly preload: string;
  /** Files made by the build: a broker started before their change runs older code. */
  readonly built: readonly string[];
  readonly policies: string;
  /** Folder of the shipped systemd units. */
  readonly units: string;
  /** Launcher script of the CLI and the broker. */
  readonly launcher: string;
  /** Script of `substrate setup`. */
  readonly setup: string;
  /** Sources of the build, and everything run by `npm start` and the broker: read-only in worlds of the installation's own project. */
  readonly sealed: readonly string[];
};

/**
 * Sealed entries of the checkout. `npm start` rebuilds and runs changed sources, so an agent's write to a source would run as the
 * operator later. Tests, documents and settings of the checkers stay writable.
 */
const RUNS = [
  ".build",
  ".npmrc",
  "api",
  "broker",
  "lima",
  "node_modules",
  "package-lock.json",
  "package.json",
  "policies",
  "schemas",
  "shim",
  "systemd",
  "world",
] as const;

const LAUNCHER = "api/bin/substrate.mjs";

/** Describes the installation in a folder. Throws for an incomplete installation. */
export function installationAt(folder: string): Installation {
  const root = realpathSync(folder);
  const init = join(root, ".build/substrate-init");
  const bundle = join(root, ".build/substrate.mjs");
  const isLinux = process.platform === "linux";
  const built = isLinux ? [init, bundle] : [bundle];
  const missing = built.find((path) => !existsSync(path));
  if (missing !== undefined)
    throw new Error(
      `'${missing}' is missing. Run 'npm run build' in '${root}', or install the package again`,
    );
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
  return {
    root,
    version,
    init,
    front: join(root, isLinux ? ".build/substrate" : LAUNCHER),
    shell: join(root, isLinux ? ".build/substrate-sh" : "api/bin/substrate-sh.mjs"),
    shim: join(root, ".build/substrate-shim"),
    preload: join(root, ".build/substrate-preload.so"),
    built,
    policies: join(root, "policies"),
    units: join(root, "systemd"),
    launcher: join(root, LAUNCHER),
    setup: join(root, "api/setup/setup.mjs"),
    sealed: RUNS.map((name) => join(root, name)),
  };
}
