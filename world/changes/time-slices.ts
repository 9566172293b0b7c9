import { setImmediate as nextTurn } from "node:timers/promises";

/** Longest slice before the broker can serve other requests. */
const TURN_MS = 5;

/** Yields to the event loop every few milliseconds. */
export class TimeSlices {
  readonly #signal: AbortSignal;
  #until = performance.now() + TURN_MS;

  /** `next` throws the signal's reason when aborted. */
  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /** Returns undefined while the slice lasts; otherwise a promise for the next turn. */
  next(): Promise<void> | undefined {
    return performance.now() < this.#until ? undefined : this.#pass();
  }

  async #pass(): Promise<void> {
    this.#signal.throwIfAborted();
    await nextTurn();
    this.#until = performance.now() + TURN_MS;
  }
}
