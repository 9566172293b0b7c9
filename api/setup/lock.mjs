import { closeSync, mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import { BUILD } from "./checkout.mjs";
import { findProgram, run } from "./programs.mjs";
import { say } from "./say.mjs";

/** Ending of flock(1) when another process has the lock. */
const HELD = "exit code 1";

/**
 * Runs the work under the checkout's lock, so set-ups run one at a time. flock(2) locks the open file, shared between flock(1) and
 * the set-up process: the kernel keeps the lock after flock(1) has exited, and releases the lock when the process dies.
 * @template T
 * @param {(lock: number | undefined) => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function withLock(work) {
  if (findProgram("flock") === undefined) return work(undefined);
  mkdirSync(BUILD, { recursive: true });
  const lock = openSync(join(BUILD, "setup.lock"), "a");
  try {
    const taken = await run(["flock", "--nonblock", "3"], { holding: lock });
    if (taken.ending === HELD) {
      say("waiting for another set-up of this checkout to end");
      await run(["flock", "3"], { holding: lock });
    }
    return await work(lock);
  } finally {
    closeSync(lock);
  }
}
