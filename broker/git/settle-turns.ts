/**
 * Init closes a git folder to everybody while it seals what lies in it (world/native/seals/settle.h). Whoever looks into git folders
 * meanwhile sees nothing there, and whoever opens what is closed leaves it closed: so looks wait for the worlds that seal, of any
 * agent, and the other way round, in the order in which they came. Two worlds may have the same git folder to seal, so one world seals
 * at a time.
 */
export class SettleTurns {
  #last: Promise<unknown> = Promise.resolve();

  settle<Result>(ask: () => Promise<Result>): Promise<Result> {
    return this.#take(ask);
  }

  /** `look` does all of it before it returns. */
  look<Result>(look: () => Result): Promise<Result> {
    return this.#take(look);
  }

  #take<Result>(act: () => Result | Promise<Result>): Promise<Result> {
    const done = this.#last.then(act);
    // The next one waits for the end of this one, also of one that threw.
    this.#last = done.catch(() => undefined);
    return done;
  }
}
