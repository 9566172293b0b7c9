import { existsSync, mkdirSync, realpathSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { BUILD } from "./checkout.mjs";
import { filesBelow, fingerprint } from "./fingerprint.mjs";
import { findProgram, lastLines, run } from "./programs.mjs";
import { SetUpError, say } from "./say.mjs";
import { updateStamp } from "./stamp.mjs";

const FLAGS = ["-std=gnu11", "-O2", "-static", "-Wall", "-Wextra", "-Werror"];

/** `.build/substrate-init`: the native program that is PID 1 of a world. */
export const init = nativeProgram("init", "world/init");

/** `.build/substrate-shim`: the one that stands on PATH for others. */
export const shim = nativeProgram("shim", "shim");

/**
 * A static program of all the C files of a folder.
 * @param {"init" | "shim"} name its key in the stamp too
 * @param {string} folder
 */
function nativeProgram(name, folder) {
  const target = join(BUILD, `substrate-${name}`);
  return {
    /** @param {import("./stamp.mjs").Stamp} stamp */
    isCurrent(stamp) {
      return existsSync(target) && stamp[name] === inputs(folder);
    },

    async make() {
      const made = inputs(folder);
      mkdirSync(BUILD, { recursive: true });
      const draft = `${target}.${process.pid}.tmp`;
      try {
        await compileNative(draft, filesBelow(folder, [".c"]));
        renameSync(draft, target);
      } finally {
        rmSync(draft, { force: true });
      }
      updateStamp({ [name]: made });
      say(`built .build/substrate-${name}`);
    },
  };
}

/**
 * Compiles C. Throws with the compiler's words when it refuses.
 * @param {string} output where the program goes
 * @param {readonly string[]} sources absolute paths
 */
export async function compileNative(output, sources) {
  if (sources.length === 0) throw new SetUpError(`Cannot build '${output}': there is no C source`);
  const cc = await run([compiler(), ...FLAGS, "-o", output, ...sources]);
  if (!cc.ok) throw new SetUpError(`The C compiler ended with ${cc.ending}:\n${lastLines(cc.tail, 40)}`);
}

/** @param {string} folder */
function inputs(folder) {
  const cc = realpathSync(compiler());
  const { size, mtimeMs } = statSync(cc);
  return fingerprint(filesBelow(folder, [".c", ".h"]), [...FLAGS, cc, String(size), String(mtimeMs)]);
}

function compiler() {
  const found = findProgram("cc") ?? findProgram("gcc");
  if (found !== undefined) return found;
  throw new SetUpError("Cannot find a C compiler ('cc' or 'gcc'). Run: apt-get install -y gcc libc6-dev");
}
