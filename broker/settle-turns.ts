/**
 * Init closes a git folder to everybody while it seals what lies in it (world/init/brought.h). Whoever looks into git folders
 * meanwhile sees nothing there, and whoever opens what is closed leaves it closed: so looks wait for the worlds that seal, of any
 * agent, and the other way round, in the order in which they came.
 */
export class SettleTurns {
  readonly #settling = new Set<Promise<unknown>>();
  #lastLook: Promise<unknown> = Promise.resolve();

  /** Any number at once. */
  async settle<Result>(ask: () => Promise<Result>): Promise<Result> {
    const settled = this.#lastLook.then(ask);
    this.#settling.add(settled);
    try {
      return await settled;
    } finally {
      this.#settling.delete(settled);
    }
  }

  /** `look` does all of it before it returns. */
  async look<Result>(look: () => Result): Promise<Result> {
    const looked = Promise.allSettled([this.#lastLook, ...this.#settling]).then(look);
    // The next look waits for the end of this one, also of one that threw.
    this.#lastLook = looked.catch(() => undefined);
    return await looked;
  }
}
