/** Sizes and signals on their way to a command: a client that sends millions must not fill the broker with them. */

/** Between two messages of one command. */
const REST_MS = 10;

export class Merged {
  readonly #waiting = new Map<string, () => void>();
  #rest: NodeJS.Timeout | undefined;

  /** Sends at once, or after the rest: then it takes the place of a waiting one of its kind, as the kernel merges signals. */
  send(kind: string, act: () => void): void {
    if (this.#rest !== undefined) {
      // The last one stays the last: SIGCONT after SIGTSTP.
      this.#waiting.delete(kind);
      this.#waiting.set(kind, act);
      return;
    }
    act();
    this.#begin();
  }

  #begin(): void {
    this.#rest = setTimeout(() => {
      this.#rest = undefined;
      const acts = [...this.#waiting.values()];
      this.#waiting.clear();
      for (const act of acts) act();
      if (acts.length > 0) this.#begin();
    }, REST_MS);
  }
}
