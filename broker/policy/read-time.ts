import { createContext, Script } from "node:vm";

/**
 * How long one reading may take, in milliseconds of this process's processors. An ordinary script of 60 KB takes about 10, and
 * one with 900 substitutions 240 where no code is compiled yet; what `read-limits.ts` lets through takes less, but for texts
 * that nobody has thought of: the parser looks again at the rest of the text for several kinds of open quote, and its time
 * then grows with the square of the length.
 */
export const MAX_READING_MS = 500;
/** The same by the clock, for a machine that is busy with something else. */
export const PATIENCE_MS = 4000;
/** Texts up to this many characters are read without a watch, which costs 0.07 ms: the square of so few takes no time. */
export const UNWATCHED_LENGTH = 4096;

/** Which part of the time a reading must have had the processor to count as slow: the rest is the watch's own error. */
const MOST_OF_IT = 0.8;

const ROOM = createContext({ act: () => undefined });
const CALL = new Script("act()");

/**
 * Runs `act`, and ends it where it is after {@link MAX_READING_MS}. It runs on this thread, and what it throws is thrown
 * on; it must not call this function again. The kernel's clock cannot tell a slow text from a processor that others had:
 * where little was used of it `act` is run once more, from its beginning, for {@link PATIENCE_MS} at most.
 *
 * @param length Characters that `act` reads.
 * @returns What `act` returned; undefined when it did not come to its end.
 */
export function readInTime<Result>(length: number, act: () => Result): Result | undefined {
  if (length <= UNWATCHED_LENGTH) return act();
  const before = process.cpuUsage();
  const first = watched(act, MAX_READING_MS);
  if (first !== undefined) return first.result;
  const { user, system } = process.cpuUsage(before);
  const wasSlow = user + system > MAX_READING_MS * MOST_OF_IT * 1000;
  return wasSlow ? undefined : watched(act, PATIENCE_MS)?.result;
}

function watched<Result>(act: () => Result, milliseconds: number): { readonly result: Result } | undefined {
  let ended: { readonly result: Result } | undefined;
  ROOM["act"] = (): void => {
    ended = { result: act() };
  };
  try {
    CALL.runInContext(ROOM, { timeout: milliseconds });
    return ended;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_SCRIPT_EXECUTION_TIMEOUT") return undefined;
    throw error;
  } finally {
    ROOM["act"] = () => undefined;
  }
}
