/** What is done with held changes in one project is done one after the other. */
export class HeldTurns {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Runs `act` when all that came before for the project is over, however it ended. */
  async of<T>(project: string, act: () => Promise<T>): Promise<T> {
    const before = this.#last.get(project) ?? Promise.resolve();
    const now = before.then(act, act);
    this.#last.set(project, now);
    try {
      return await now;
    } finally {
      if (this.#last.get(project) === now) this.#last.delete(project);
    }
  }
}
