import { existsSync, mkdirSync, realpathSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { BUILD } from "./checkout.mjs";
import { filesBelow, fingerprint } from "./fingerprint.mjs";
import { findProgram, lastLines, run } from "./programs.mjs";
import { SetUpError, say } from "./say.mjs";
import { updateStamp } from "./stamp.mjs";

const FLAGS = ["-std=gnu11", "-O2", "-static", "-Wall", "-Wextra", "-Werror"];
const TARGET = join(BUILD, "substrate-init");

/** `.build/substrate-init`: the native program that is PID 1 of a world. */
export const init = {
  /** @param {import("./stamp.mjs").Stamp} stamp */
  isCurrent(stamp) {
    return existsSync(TARGET) && stamp.init === inputs();
  },

  async make() {
    const made = inputs();
    mkdirSync(BUILD, { recursive: true });
    const draft = `${TARGET}.${process.pid}.tmp`;
    try {
      await compileInit(draft, filesBelow("world/init", [".c"]));
      renameSync(draft, TARGET);
    } finally {
      rmSync(draft, { force: true });
    }
    updateStamp({ init: made });
    say("built .build/substrate-init");
  },
};

/**
 * Compiles world/init. Throws with the compiler's words when it refuses.
 * @param {string} output where the program goes
 * @param {readonly string[]} sources absolute paths
 */
export async function compileInit(output, sources) {
  if (sources.length === 0) throw new SetUpError("Cannot build substrate-init: world/init holds no C source");
  const cc = await run([compiler(), ...FLAGS, "-o", output, ...sources]);
  if (!cc.ok) throw new SetUpError(`The C compiler ended with ${cc.ending}:\n${lastLines(cc.tail, 40)}`);
}

function inputs() {
  const cc = realpathSync(compiler());
  const { size, mtimeMs } = statSync(cc);
  return fingerprint(filesBelow("world/init", [".c", ".h"]), [...FLAGS, cc, String(size), String(mtimeMs)]);
}

function compiler() {
  const found = findProgram("cc") ?? findProgram("gcc");
  if (found !== undefined) return found;
  throw new SetUpError("Cannot find a C compiler ('cc' or 'gcc'). Run: apt-get install -y gcc libc6-dev");
}
