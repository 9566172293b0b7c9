import { existsSync, mkdirSync, realpathSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { BUILD, CHECKOUT } from "./checkout.mjs";
import { filesBelow, filesIn, fingerprint } from "./fingerprint.mjs";
import { findProgram, lastLines, run } from "./programs.mjs";
import { SetUpError, say } from "./say.mjs";
import { updateStamp } from "./stamp.mjs";

const FLAGS = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"];

const PROGRAM = [...FLAGS, "-static"];

/**
 * Flags of the preload library. `-z now`: children of vfork(2) must not take the linker's lock. No _FORTIFY_SOURCE: headers would
 * inline the wrapped functions. No deletion of NULL checks: headers declare checked parameters as non-null.
 */
const LIBRARY = [
  ...[
    ...FLAGS,
    "-shared",
    "-fPIC",
    "-fvisibility=hidden",
    "-U_FORTIFY_SOURCE",
    "-fno-delete-null-pointer-checks",
  ],
  "-Wl,-z,now,-z,relro",
];

/**
 * A program or library in C, built from a folder's files. `rooms`: subfolders belong too, and includes are relative to the folder.
 * `shared`: folders whose files are in several programs.
 * @typedef {{ folder: string, file: string, flags: readonly string[], rooms?: true, shared?: readonly string[] }} Native
 */

/** The client of the broker's sockets, and of a command's stream on them. */
const CLIENT = ["shim/client", "shim/stream"];

/** @type {Readonly<Record<"init" | "shim" | "front" | "sh" | "preload", Native>>} */
export const NATIVE = {
  init: { folder: "world/native", file: "substrate-init", flags: PROGRAM, rooms: true },
  shim: { folder: "shim", file: "substrate-shim", flags: PROGRAM, shared: CLIENT },
  front: { folder: "shim/front", file: "substrate", flags: PROGRAM, shared: CLIENT },
  sh: { folder: "shim/front", file: "substrate-sh", flags: [...PROGRAM, "-DSUBSTRATE_SH"], shared: CLIENT },
  preload: { folder: "shim/preload", file: "substrate-preload.so", flags: LIBRARY },
};

/** Step: `.build/substrate-init`, PID 1 of a world. */
export const init = nativeStep("init");

/** Step: `.build/substrate-shim`, linked on PATH under other programs' names. */
export const shim = nativeStep("shim");

/** Step: `.build/substrate`, the CLI's `exec` and `check`, which becomes Node for everything else. */
export const front = nativeStep("front");

/** Step: `.build/substrate-sh`, the same as a shell for SHELL, make and npm. */
export const sh = nativeStep("sh");

/** Step: `.build/substrate-preload.so`, which reports from inside a world's programs. */
export const preload = nativeStep("preload");

/** @param {keyof typeof NATIVE} name also the key in the stamp */
function nativeStep(name) {
  const { folder, file, rooms, shared = [] } = NATIVE[name];
  const flags = flagsOf(CHECKOUT, NATIVE[name]);
  /** @param {readonly string[]} suffixes */
  const files = (suffixes) => [
    ...(rooms ? filesBelow : filesIn)(folder, suffixes),
    ...shared.flatMap((each) => filesIn(each, suffixes)),
  ];
  const target = join(BUILD, file);
  return {
    /** @param {import("./stamp.mjs").Stamp} stamp */
    isCurrent(stamp) {
      return existsSync(target) && stamp[name] === inputs(files([".c", ".h"]), flags);
    },

    async make() {
      const made = inputs(files([".c", ".h"]), flags);
      mkdirSync(BUILD, { recursive: true });
      const draft = `${target}.${process.pid}.tmp`;
      try {
        await compileNative(draft, files([".c"]), flags);
        renameSync(draft, target);
      } finally {
        rmSync(draft, { force: true });
      }
      updateStamp({ [name]: made });
      say(`built .build/${file}`);
    },
  };
}

/**
 * Compiles C. Throws with the compiler's output on errors.
 * @param {string} output path of the program
 * @param {readonly string[]} sources absolute paths
 * @param {readonly string[]} flags
 */
export async function compileNative(output, sources, flags) {
  if (sources.length === 0) throw new SetUpError(`Cannot build '${output}': there is no C source`);
  const cc = await run([compiler(), ...flags, "-o", output, ...sources]);
  if (!cc.ok) throw new SetUpError(`The C compiler ended with ${cc.ending}:\n${lastLines(cc.tail, 40)}`);
}

/**
 * @param {string} root the checkout
 * @param {Native} native
 * @returns {readonly string[]}
 */
export function flagsOf(root, { folder, flags, rooms }) {
  return rooms ? [...flags, "-I", join(root, folder)] : flags;
}

/**
 * @param {readonly string[]} files absolute paths
 * @param {readonly string[]} flags
 */
function inputs(files, flags) {
  const cc = realpathSync(compiler());
  const { size, mtimeMs } = statSync(cc);
  return fingerprint(files, [...flags, cc, String(size), String(mtimeMs)]);
}

function compiler() {
  const found = findProgram("cc") ?? findProgram("gcc");
  if (found !== undefined) return found;
  throw new SetUpError("Cannot find a C compiler ('cc' or 'gcc'). Run: apt-get install -y gcc libc6-dev");
}
