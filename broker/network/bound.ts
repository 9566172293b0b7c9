/** Something of which there is only so much at once. */
export class Bound {
  readonly #most: number;
  #taken = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** False, and nothing is taken, when it would be more than the most. */
  take(count: number): boolean {
    if (this.#taken + count > this.#most) return false;
    this.#taken += count;
    return true;
  }

  giveBack(count: number): void {
    this.#taken -= count;
  }
}
