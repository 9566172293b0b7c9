/** A counter with an upper bound. */
export class Bound {
  readonly #most: number;
  #taken = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Takes `count`, or nothing and returns false when the bound would be exceeded. */
  take(count: number): boolean {
    if (this.#taken + count > this.#most) return false;
    this.#taken += count;
    return true;
  }

  giveBack(count: number): void {
    this.#taken -= count;
  }
}
