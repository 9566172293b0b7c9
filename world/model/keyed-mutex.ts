/** Runs work for the same key sequentially. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Runs `work` after all earlier work for the key has settled, successful or failed. */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const mine = before.then(work, work);
    this.#last.set(key, mine);
    try {
      return await mine;
    } finally {
      if (this.#last.get(key) === mine) this.#last.delete(key);
    }
  }
}
