/** Rules of policies, and what a token adds to them. Pure. */
import type { NetEntry } from "./names/entries.ts";
import type { AddressRange } from "./names/ranges.ts";
import { type NetRange, type NetRules, netRules, type NetVerdict } from "./rules.ts";

/**
 * Allows what the rules do or an entry does. Only the policies' own entries cover internal addresses: a person who grants
 * a name, or a range, has not seen where it leads.
 */
export function withGrants(rules: NetRules, entries: readonly NetEntry[]): NetRules {
  if (entries.length === 0) return rules;
  const net = { entries, source: "scope_token" };
  return new GrantedRules(rules, netRules([{ net, presets: new Map() }]));
}

class GrantedRules implements NetRules {
  readonly #rules: NetRules;
  readonly #granted: NetRules;
  readonly ports: readonly number[];
  readonly ranges: readonly NetRange[];
  readonly isEmpty: boolean;

  constructor(rules: NetRules, granted: NetRules) {
    this.#rules = rules;
    this.#granted = granted;
    this.ports = inEither(rules.ports, granted.ports);
    this.ranges = [...rules.ranges, ...granted.ranges];
    this.isEmpty = rules.isEmpty && granted.isEmpty;
  }

  name(name: string): NetVerdict {
    return mildest(this.#rules.name(name), this.#granted.name(name));
  }

  connection(name: string, port: number): NetVerdict {
    return mildest(this.#rules.connection(name, port), this.#granted.connection(name, port));
  }

  address(address: string, port: number): NetVerdict {
    return mildest(this.#rules.address(address, port), this.#granted.address(address, port));
  }

  covers(address: string, port: number): boolean {
    return this.#rules.covers(address, port);
  }

  coversRange(range: AddressRange, port: number): boolean {
    return this.#rules.coversRange(range, port);
  }

  portsOf(name: string): readonly number[] {
    return inEither(this.#rules.portsOf(name), this.#granted.portsOf(name));
  }
}

/** Refused by both: where the policies' own list stands is what a person can change. */
function mildest(rules: NetVerdict, granted: NetVerdict): NetVerdict {
  return rules.allowed || !granted.allowed ? rules : granted;
}

function inEither(some: readonly number[], others: readonly number[]): readonly number[] {
  return [...new Set([...some, ...others])].sort((one, other) => one - other);
}
