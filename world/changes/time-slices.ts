import { setImmediate as nextTurn } from "node:timers/promises";

/** The broker has others to serve: after that long it takes a turn for them. */
const TURN_MS = 5;

/** Gives way to others when a few milliseconds are used up. */
export class TimeSlices {
  readonly #signal: AbortSignal;
  #until = performance.now() + TURN_MS;

  /** `next` throws what `signal` is aborted with. */
  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /** Undefined, mostly: only then is there nothing to wait for. */
  next(): Promise<void> | undefined {
    return performance.now() < this.#until ? undefined : this.#pass();
  }

  async #pass(): Promise<void> {
    this.#signal.throwIfAborted();
    await nextTurn();
    this.#until = performance.now() + TURN_MS;
  }
}
