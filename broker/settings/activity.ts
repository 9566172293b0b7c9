/** Counts running calls: shutdown waits for running calls, and no call begins during shutdown. */
export class Activity {
  #running = 0;
  #closing = false;
  #idle: (() => void) | undefined;

  /** Runs a call and counts the call while running; undefined during shutdown. */
  during<T>(call: () => Promise<T>): Promise<T> | undefined {
    if (this.#closing) return undefined;
    this.#running += 1;
    return call().finally(() => {
      this.#running -= 1;
      if (this.#running === 0) this.#idle?.();
    });
  }

  /** Number of running calls. */
  get running(): number {
    return this.#running;
  }

  /** Refuses new calls. Settles when all running calls have ended. */
  async close(): Promise<void> {
    this.#closing = true;
    if (this.#running === 0) return;
    await new Promise<void>((resolve) => {
      this.#idle = resolve;
    });
  }
}
