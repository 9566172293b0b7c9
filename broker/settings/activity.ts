/** The calls that are under way: nobody may take the broker down under them, and none begins while it goes down. */
export class Activity {
  #running = 0;
  #closing = false;
  #idle: (() => void) | undefined;

  /** Runs a call and counts it; undefined when the broker is going down. */
  during<T>(call: () => Promise<T>): Promise<T> | undefined {
    if (this.#closing) return undefined;
    this.#running += 1;
    return call().finally(() => {
      this.#running -= 1;
      if (this.#running === 0) this.#idle?.();
    });
  }

  /** From now on nothing begins. Settles when nothing runs any more. */
  async close(): Promise<void> {
    this.#closing = true;
    if (this.#running === 0) return;
    await new Promise<void>((resolve) => {
      this.#idle = resolve;
    });
  }
}
