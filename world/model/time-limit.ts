/** Time limits as signals. */
import { setMaxListeners } from "node:events";

/**
 * Returns a signal that aborts with a `TimeoutError` after so many milliseconds, or before as one of the others does.
 *
 * Node holds a signal of `AbortSignal.timeout` weakly, also when `AbortSignal.any` follows it: where the garbage collector takes it, the
 * limit is lost, and whoever waits does so for ever (nodejs/node#57736). Here the timer holds the signal.
 */
export function timeLimit(ms: number, ...others: readonly AbortSignal[]): AbortSignal {
  const limit = new AbortController();
  const stop = (reason: unknown): void => {
    clearTimeout(timer);
    limit.abort(reason);
  };
  const timer = setTimeout(() => stop(new DOMException(`It took longer than ${ms} ms`, "TimeoutError")), ms);
  timer.unref();
  for (const other of others) {
    // Many may wait for one signal: Node warns of a leak from the eleventh on.
    setMaxListeners(0, other);
    if (other.aborted) stop(other.reason);
    // The limit's own end takes its listener off a signal that lives longer.
    else other.addEventListener("abort", () => stop(other.reason), { once: true, signal: limit.signal });
  }
  return limit.signal;
}
