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
 * Bound at once, because the linker's lock is not for children of vfork(2). Without the inline forms of what it wraps, and with
 * the right to compare with NULL what headers say is none.
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
 * What is built of C: the files that lie in a folder, and with `rooms` those in the folders below it, which then include each other by
 * paths from that folder.
 * @typedef {{ folder: string, file: string, flags: readonly string[], rooms?: true }} Native
 */

/** @type {Readonly<Record<"init" | "shim" | "preload", Native>>} */
export const NATIVE = {
  init: { folder: "world/native", file: "substrate-init", flags: PROGRAM, rooms: true },
  shim: { folder: "shim", file: "substrate-shim", flags: PROGRAM },
  preload: { folder: "shim/preload", file: "substrate-preload.so", flags: LIBRARY },
};

/** `.build/substrate-init`: the native program that is PID 1 of a world. */
export const init = nativeStep("init");

/** `.build/substrate-shim`: the one that stands on PATH for others. */
export const shim = nativeStep("shim");

/** `.build/substrate-preload.so`: what reports from inside the programs of a world. */
export const preload = nativeStep("preload");

/** @param {keyof typeof NATIVE} name its key in the stamp too */
function nativeStep(name) {
  const { folder, file, rooms } = NATIVE[name];
  const flags = flagsOf(CHECKOUT, NATIVE[name]);
  /** @param {readonly string[]} suffixes */
  const files = (suffixes) => (rooms ? filesBelow : filesIn)(folder, suffixes);
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
 * Compiles C. Throws with the compiler's words when it refuses.
 * @param {string} output where the program goes
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
