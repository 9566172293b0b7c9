/**
 * A mutex for git folders. Init closes a git folder to everybody while sealing its content
 * (world/native/seals/settle.h): meanwhile a look would find the folder empty, and a look that reopens closed folders
 * would leave the folder closed. So looks and seals, of all worlds and agents, take turns in order of arrival. Seals
 * also exclude each other: two worlds may seal the same git folder.
 */
export class SettleTurns {
  #last: Promise<unknown> = Promise.resolve();

  settle<Result>(ask: () => Promise<Result>): Promise<Result> {
    return this.#take(ask);
  }

  /** `look` must finish its work before returning. */
  look<Result>(look: () => Result): Promise<Result> {
    return this.#take(look);
  }

  #take<Result>(act: () => Result | Promise<Result>): Promise<Result> {
    const done = this.#last.then(act);
    // The next turn starts after `done` settles, even after a rejection.
    this.#last = done.catch(() => undefined);
    return done;
  }
}
