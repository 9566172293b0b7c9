/** Chance that a seed names, and the damage it does to a text. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
    // Neighbouring seeds begin alike.
    for (let round = 0; round < 3; round += 1) this.below(2);
  }

  /** mulberry32 */
  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  }

  oneIn(count: number): boolean {
    return this.below(count) === 0;
  }

  pick<Item>(items: readonly [Item, ...Item[]]): Item {
    return items[this.below(items.length)] ?? items[0];
  }
}

const DAMAGE = [
  ..."'\"\\$`(){}[]<>|&;#!=,*?~- \n\t1xE%:+@^/",
  "$(p4)",
  "`p4`",
  "${x",
  "$((",
  "))",
  "<<E\n",
  "\nE\n",
  "$'",
  '$"',
  "\\\n",
  ";p4;",
  "\np4\n",
  " p4 ",
  "<(p4)",
  "${x:-'",
  "'}",
  "[[",
  "((",
  "\r",
  "&&p4",
  "|p4",
  "x=",
  "eval ",
] as const;

/** Something put in, taken out or doubled at one to three places. */
export function damaged(text: string, random: Random): string {
  let changed = text;
  for (let times = 1 + random.below(3); times > 0; times -= 1) {
    const at = random.below(changed.length + 1);
    const length = random.oneIn(2) ? 1 : random.below(6);
    const part = random.oneIn(3)
      ? ""
      : random.oneIn(4)
        ? changed.slice(at, at + length) + changed.slice(at, at + length)
        : random.pick(DAMAGE as never as readonly [string, ...string[]]);
    changed = changed.slice(0, at) + part + changed.slice(at + (random.oneIn(2) ? length : 0));
  }
  return changed;
}
