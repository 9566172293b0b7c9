/** Turns of the event loop for long work: its parts take one each, so that other work is done between two of them. */
import { setImmediate as turn } from "node:timers/promises";

/** Deciding about a command of 64 KiB takes some hundred milliseconds; of so many bytes, less than one turn of the event loop may. */
const LONG = 8 * 1024;

let lastLong: Promise<void> = Promise.resolve();

/** Waits until long work has a turn of the event loop that no other long work has; undefined: short work need not wait. */
export function turnFor(bytes: number): Promise<void> | undefined {
  if (bytes <= LONG) return undefined;
  lastLong = lastLong.then(() => turn());
  return lastLong;
}
