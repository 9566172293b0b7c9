/** Synthetic addresses: a world dials an address, and the rules are asked about its name. */

/** 198.18.0.0/15, reserved for benchmarks (RFC 2544): not routed, and no program treats it as a private network. */
const FIRST = (198 << 24) + (18 << 16);

/** Addresses of the range, without 198.18.0.0 and the broadcast 198.19.255.255. */
export const RANGE_SIZE = 2 ** 17 - 2;

/**
 * Half the range. A wildcard or observe mode lets a program look up endless names, and a synthetic address is never
 * reused: the bound limits both the addresses of a world and the broker's memory.
 */
const MOST_NAMES = 2 ** 16;

/** Characters of all names together: 65,536 names of 253 characters would take 16 MB per world. */
const MOST_CHARACTERS = 2 ** 21;

/** The synthetic addresses of one world, where each keeps its name for good. */
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
   * Returns the address of a name, the same each time; null when the addresses are used up.
   *
   * @param name normalized.
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

  /** Returns the name of a synthetic address; undefined for an address not in canonical form. */
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
  // Non-canonical text (198.18.0.01, 198.18.0.256) yields an index whose address differs from the text.
  return index >= 0 && index < RANGE_SIZE && addressAt(index) === address ? index : undefined;
}
