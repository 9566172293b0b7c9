/** Addresses that stand for names: a world dials one, and its name is what the rules are asked about. */

/** 198.18.0.0/15, set aside for benchmarks (RFC 2544): routed nowhere, and no program takes it for a private network. */
const FIRST = (198 << 24) + (18 << 16);

/** What the range holds without 198.18.0.0 and the broadcast 198.19.255.255. */
export const RANGE_SIZE = 2 ** 17 - 2;

/**
 * Half the range. A wildcard, or observe mode, lets a program look up endless names, and an address that was given is
 * never given again: what a world may use up is also what it may make the broker remember.
 */
const MOST_NAMES = 2 ** 16;

/** Characters of all names together: 65,536 names of 253 characters would be 16 MB for each world. */
const MOST_CHARACTERS = 2 ** 21;

/** One per world: its addresses mean nothing to another world, and what they stand for never changes. */
export class SyntheticAddresses {
  readonly #mostNames: number;
  readonly #indexes = new Map<string, number>();
  readonly #names: string[] = [];
  #characters = 0;

  /** @param mostNames 1 to 131,070. */
  constructor(mostNames = MOST_NAMES) {
    if (!Number.isInteger(mostNames) || mostNames < 1 || mostNames > RANGE_SIZE)
      throw new RangeError(`Cannot give addresses to ${mostNames} names: it must be 1 to ${RANGE_SIZE}`);
    this.#mostNames = mostNames;
  }

  /**
   * The address of a name, the same each time; null when they are used up.
   *
   * @param name in its one spelling.
   */
  addressOf(name: string): string | null {
    const known = this.#indexes.get(name);
    if (known !== undefined) return addressAt(known);
    if (this.#names.length >= this.#mostNames || this.#characters + name.length > MOST_CHARACTERS)
      return null;
    const index = this.#names.length;
    this.#names.push(name);
    this.#indexes.set(name, index);
    this.#characters += name.length;
    return addressAt(index);
  }

  /** The name that an address was given to. An address in any but the usual spelling is nobody's. */
  nameOf(address: string): string | undefined {
    const index = indexOf(address);
    return index === undefined ? undefined : this.#names[index];
  }
}

function addressAt(index: number): string {
  const number = (FIRST + 1 + index) >>> 0;
  return [number >>> 24, (number >>> 16) & 255, (number >>> 8) & 255, number & 255].join(".");
}

function indexOf(address: string): number | undefined {
  const parts = /^198\.(18|19)\.(\d{1,3})\.(\d{1,3})$/.exec(address);
  if (parts === null) return undefined;
  const index = (Number(parts[1]) - 18) * 65_536 + Number(parts[2]) * 256 + Number(parts[3]) - 1;
  // Text that is another spelling (198.18.0.01, 198.18.0.256) leads to an index whose address reads differently.
  return index >= 0 && index < RANGE_SIZE && addressAt(index) === address ? index : undefined;
}
