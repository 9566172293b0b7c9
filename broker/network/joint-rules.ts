/** Combines the rules of several policies: all must allow, so a profile narrows. Pure. */
import { type AddressRange, rangeText, readRange } from "./names/ranges.ts";
import type { NetRange, NetRules, NetVerdict } from "./rules.ts";

/** Combines rules: the first refusal counts. An empty list refuses everything. */
export function allOf(rules: readonly NetRules[]): NetRules {
  const [first, ...rest] = rules;
  if (first === undefined) return NOTHING;
  return rest.reduce((one, other) => new BothRules(one, other), first);
}

const NO_POLICY: NetVerdict = { allowed: false, entry: null, source: "no policy" };

const NOTHING: NetRules = {
  name: () => NO_POLICY,
  connection: () => NO_POLICY,
  address: () => NO_POLICY,
  covers: () => false,
  coversRange: () => false,
  portsOf: () => [],
  ports: [],
  ranges: [],
  isEmpty: true,
};

class BothRules implements NetRules {
  readonly #one: NetRules;
  readonly #other: NetRules;
  readonly ports: readonly number[];
  readonly ranges: readonly NetRange[];
  readonly isEmpty: boolean;

  constructor(one: NetRules, other: NetRules) {
    this.#one = one;
    this.#other = other;
    this.ports = inBoth(one.ports, other.ports);
    this.ranges = overlaps(one.ranges.map(parsed), other.ranges.map(parsed));
    this.isEmpty = this.ports.length === 0 && this.ranges.length === 0;
  }

  /** Both must allow the name on a common port: with different ports, no connection could follow the lookup. */
  name(name: string): NetVerdict {
    const verdict = strictest(this.#one.name(name), this.#other.name(name));
    if (!verdict.allowed || this.portsOf(name).length > 0) return verdict;
    return { allowed: false, entry: null, source: this.#other.name(name).source };
  }

  connection(name: string, port: number): NetVerdict {
    return strictest(this.#one.connection(name, port), this.#other.connection(name, port));
  }

  address(address: string, port: number): NetVerdict {
    return strictest(this.#one.address(address, port), this.#other.address(address, port));
  }

  covers(address: string, port: number): boolean {
    return this.#one.covers(address, port) && this.#other.covers(address, port);
  }

  coversRange(range: AddressRange, port: number): boolean {
    return this.#one.coversRange(range, port) && this.#other.coversRange(range, port);
  }

  portsOf(name: string): readonly number[] {
    return inBoth(this.#one.portsOf(name), this.#other.portsOf(name));
  }
}

function strictest(one: NetVerdict, other: NetVerdict): NetVerdict {
  return one.allowed ? (other.allowed ? one : other) : one;
}

function inBoth(one: readonly number[], other: readonly number[]): readonly number[] {
  const also = new Set(other);
  return one.filter((port) => also.has(port));
}

type ParsedRange = { readonly range: AddressRange; readonly ports: readonly number[] };

function parsed({ cidr, ports }: NetRange): ParsedRange {
  const range = readRange(cidr);
  if (range === null) throw new Error(`'${cidr}' is not a range`);
  return { range, ports };
}

/**
 * Intersects two lists of ranges. Two overlapping ranges are nested, so each range looks up its containing ranges in
 * the other list: comparing two lists of four thousand pairwise would take half a minute.
 */
function overlaps(some: readonly ParsedRange[], others: readonly ParsedRange[]): readonly NetRange[] {
  const [inOthers, inSome] = [holdersIn(others), holdersIn(some)];
  return [
    ...some.flatMap((narrow) => inOthers(narrow.range, 0).flatMap((wide) => both(narrow, wide))),
    ...others.flatMap((narrow) => inSome(narrow.range, 1).flatMap((wide) => both(narrow, wide))),
  ];
}

/** Returns a lookup for the ranges containing a given range and wider by at least `bits` bits. */
function holdersIn(
  ranges: readonly ParsedRange[],
): (narrow: AddressRange, bits: number) => readonly ParsedRange[] {
  const byPlace = new Map<string, ParsedRange[]>();
  for (const each of ranges) {
    const place = placeOf(each.range, each.range.prefix);
    byPlace.set(place, [...(byPlace.get(place) ?? []), each]);
  }
  const prefixes = [...new Set(ranges.map(({ range }) => range.prefix))];
  return (narrow, bits) =>
    prefixes
      .filter((prefix) => prefix + bits <= narrow.prefix)
      .flatMap((prefix) => byPlace.get(placeOf(narrow, prefix)) ?? []);
}

/** Names the range of `prefix` fixed bits around a range's first address. IPv4 only. */
function placeOf({ first }: AddressRange, prefix: number): string {
  return `${first >> BigInt(32 - prefix)}/${prefix}`;
}

function both(narrow: ParsedRange, wide: ParsedRange): readonly NetRange[] {
  const ports = inBoth(narrow.ports, wide.ports);
  return ports.length === 0 ? [] : [{ cidr: rangeText(narrow.range), ports }];
}
