import { existsSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";

/** Paths of the program's own files. */
export type Installation = {
  readonly root: string;
  readonly version: string;
  readonly init: string;
  /** The native program for people, shells and agents' settings. */
  readonly front: string;
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

/** Describes the installation in a folder. Throws for an incomplete installation. */
export function installationAt(folder: string): Installation {
  const root = realpathSync(folder);
  const init = join(root, ".build/substrate-init");
  if (!existsSync(init))
    throw new Error(`'${init}' is missing. Run 'npm run build' in '${root}', or install the package again`);
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
  return {
    root,
    version,
    init,
    front: join(root, ".build/substrate"),
    shim: join(root, ".build/substrate-shim"),
    preload: join(root, ".build/substrate-preload.so"),
    built: [init, join(root, ".build/substrate.mjs")],
    policies: join(root, "policies"),
    units: join(root, "systemd"),
    launcher: join(root, "api/bin/substrate.mjs"),
    setup: join(root, "api/setup/setup.mjs"),
    sealed: RUNS.map((name) => join(root, name)),
  };
}
