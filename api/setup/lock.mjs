import { closeSync, mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import { BUILD } from "./checkout.mjs";
import { findProgram, run } from "./programs.mjs";
import { say } from "./say.mjs";

/** flock(1) answers this when somebody else has the lock. */
const HELD = "exit code 1";

/**
 * One set-up at a time per checkout. The kernel holds the lock on our descriptor (flock(2): on the open file, which
 * flock(1) shares with us and outlives it), so it ends with us, however we end.
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
