/** Rules of several policies that must all allow: a profile narrows. Pure. */
import { type AddressRange, rangeText, readRange } from "./names/ranges.ts";
import type { NetRange, NetRules, NetVerdict } from "./rules.ts";

/** Refuses what any of them refuses, with the verdict of the first that does. Of none: nothing. */
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

  /** Allowed by both, and on a port that is the same: an answer for any other would lead nowhere. */
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
  if (range === null) throw new Error(`'${cidr}' is no range`);
  return { range, ports };
}

/**
 * Of two ranges that overlap one lies in the other, so for each the wider ones are looked up that hold it: four thousand
 * in either list, compared one by one, would take half a minute.
 */
function overlaps(some: readonly ParsedRange[], others: readonly ParsedRange[]): readonly NetRange[] {
  const [inOthers, inSome] = [holdersIn(others), holdersIn(some)];
  return [
    ...some.flatMap((narrow) => inOthers(narrow.range, 0).flatMap((wide) => both(narrow, wide))),
    ...others.flatMap((narrow) => inSome(narrow.range, 1).flatMap((wide) => both(narrow, wide))),
  ];
}

/** What finds those that hold a range, and are wider by at least so many bits. */
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

/** The range of that many fixed bits in which a range begins. These are IPv4's alone. */
function placeOf({ first }: AddressRange, prefix: number): string {
  return `${first >> BigInt(32 - prefix)}/${prefix}`;
}

function both(narrow: ParsedRange, wide: ParsedRange): readonly NetRange[] {
  const ports = inBoth(narrow.ports, wide.ports);
  return ports.length === 0 ? [] : [{ cidr: rangeText(narrow.range), ports }];
}
