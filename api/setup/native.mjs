import { existsSync, mkdirSync, realpathSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { BUILD } from "./checkout.mjs";
import { filesIn, fingerprint } from "./fingerprint.mjs";
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
 * What is built of C: the files that lie in a folder, not in those below.
 * @typedef {{ folder: string, file: string, flags: readonly string[] }} Native
 */

/** @type {Readonly<Record<"init" | "shim" | "preload", Native>>} */
export const NATIVE = {
  init: { folder: "world/init", file: "substrate-init", flags: PROGRAM },
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
  const { folder, file, flags } = NATIVE[name];
  const target = join(BUILD, file);
  return {
    /** @param {import("./stamp.mjs").Stamp} stamp */
    isCurrent(stamp) {
      return existsSync(target) && stamp[name] === inputs(folder, flags);
    },

    async make() {
      const made = inputs(folder, flags);
      mkdirSync(BUILD, { recursive: true });
      const draft = `${target}.${process.pid}.tmp`;
      try {
        await compileNative(draft, filesIn(folder, [".c"]), flags);
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
 * @param {string} folder
 * @param {readonly string[]} flags
 */
function inputs(folder, flags) {
  const cc = realpathSync(compiler());
  const { size, mtimeMs } = statSync(cc);
  return fingerprint(filesIn(folder, [".c", ".h"]), [...flags, cc, String(size), String(mtimeMs)]);
}

function compiler() {
  const found = findProgram("cc") ?? findProgram("gcc");
  if (found !== undefined) return found;
  throw new SetUpError("Cannot find a C compiler ('cc' or 'gcc'). Run: apt-get install -y gcc libc6-dev");
}
