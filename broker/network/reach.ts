/** What commands under a policy may reach, as it is now. */
import { BoundedMap } from "../model/bounded-map.ts";
import type { NetworkRules } from "../../world/backend.ts";
import { type Allowance, allowanceOf } from "../budgets/limits.ts";
import type { Effective } from "../model/effective.ts";
import type { CompiledPolicy } from "../policy/index.ts";
import { type NetEntry, type PresetName, presetsIn } from "./names/entries.ts";
import type { Expansion } from "./presets/preset.ts";
import type { Presets } from "./presets/presets.ts";
import { HostResolver } from "./resolver.ts";
import type { HostPort } from "./names/names.ts";
import { type NetRange, type NetRules, netRules, type NetVerdict } from "./rules.ts";
import type { AddressRange } from "./names/ranges.ts";

export type Reach = {
  readonly effective: Effective;
  /** Of the policies that enforce, and a token: what they refuse is refused. Null when all only observe. */
  readonly enforced: NetRules | null;
  /** Of all policies, and a token: what they refuse is noted. */
  readonly all: NetRules;
  /** What is to be brought to the gateway. */
  readonly captured: NetworkRules;
  readonly resolver: HostResolver;
  /** Undefined: as fast as it goes. */
  readonly bytesPerSecond: number | undefined;
  /** What each policy lets an agent use up. */
  readonly allowances: readonly Allowance[];
};

/**
 * `blocked`: it is refused. `denied`: the policies refuse it, whether or not it is blocked. `verdict`: of the policy that
 * blocks, where one does: another that only observes may refuse it too, and to change that one would help nobody.
 */
export type Judgement = { readonly blocked: boolean; readonly denied: boolean; readonly verdict: NetVerdict };

export function judgeBy(reach: Reach, ask: (rules: NetRules) => NetVerdict): Judgement {
  const verdict = ask(reach.all);
  const enforced = reach.enforced === null ? verdict : ask(reach.enforced);
  const blocked = reach.enforced !== null && !enforced.allowed;
  return { blocked, denied: !verdict.allowed, verdict: blocked ? enforced : verdict };
}

const EVERYTHING: NetworkRules = { ports: "any", ranges: [{ cidr: "0.0.0.0/0", ports: "any" }] };

const DEFAULT_REFRESH_SECS = 60;

/** Each is some kilobytes; one for each policy and project in use. */
const MAX_MADE = 256;

type Made = {
  readonly reach: Reach;
  readonly expansions: readonly (Expansion | undefined)[];
  freshUntil: number;
};

/** How long presets are not asked about again, in milliseconds: each asks the file system for a dozen files. */
const FRESH_MS = 1000;

export class Reaches {
  readonly #presets: Presets;
  readonly #resolvers = new Map<string, HostResolver>();
  readonly #made = new BoundedMap<string, Made>(MAX_MADE);
  /** The last answer for each preset and project: what holds while a newer one is fetched. */
  readonly #expansions = new Map<string, Expansion>();

  constructor(presets: Presets) {
    this.#presets = presets;
  }

  /** With presets as they are on the host now; the first time for a preset waits for its tool. */
  async fresh(effective: Effective, project: string): Promise<Reach> {
    const known = this.#made.get(keyOf(effective, project));
    if (known !== undefined && performance.now() < known.freshUntil) return known.reach;
    for (const policy of effective.policies)
      for (const [name, expansion] of await this.#presets.expandAll(policy.net, project))
        this.#expansions.set(`${name} ${project}`, expansion);
    return this.#of(effective, project, performance.now() + FRESH_MS);
  }

  /** At once, with presets as they were last known: one that was never asked for stands for nothing yet. */
  now(effective: Effective, project: string): Reach {
    return this.#of(effective, project, 0);
  }

  #of(effective: Effective, project: string, freshUntil: number): Reach {
    const key = keyOf(effective, project);
    const known = this.#made.get(key);
    const expansions = effective.policies.flatMap(({ net }) =>
      presetsIn(net).map((name) => this.#expansions.get(`${name} ${project}`)),
    );
    if (known !== undefined && isSame(known.expansions, expansions)) {
      known.freshUntil = Math.max(known.freshUntil, freshUntil);
      return known.reach;
    }
    const reach = this.#make(effective, project);
    this.#made.set(key, { reach, expansions, freshUntil });
    return reach;
  }

  #make(effective: Effective, project: string): Reach {
    const { policies } = effective;
    const enforcing = policies.filter(({ mode }) => mode === "enforce");
    const beyond = effective.beyond?.net ?? [];
    const enforced = enforcing.length === 0 ? null : withGrants(this.#rules(enforcing, project), beyond);
    const rates = policies.flatMap(({ document }) => document.net?.egress_budget?.bytes_per_sec ?? []);
    return {
      effective,
      enforced,
      all: withGrants(this.#rules(policies, project), beyond),
      captured: enforced === null ? EVERYTHING : { ports: enforced.ports, ranges: enforced.ranges },
      resolver: this.#resolver(policies),
      allowances: policies.map(({ document }) => allowanceOf(document)),
      bytesPerSecond: rates.length === 0 ? undefined : Math.min(...rates),
    };
  }

  #rules(policies: readonly CompiledPolicy[], project: string): NetRules {
    return netRules(
      policies.map(({ net }) => {
        const presets = new Map<PresetName, { readonly entries: readonly HostPort[] }>();
        for (const name of presetsIn(net)) {
          const expansion = this.#expansions.get(`${name} ${project}`);
          if (expansion !== undefined) presets.set(name, expansion);
        }
        return { net, presets };
      }),
    );
  }

  /** One for all worlds that ask the same servers: a name is looked up once for all of them. */
  #resolver(policies: readonly CompiledPolicy[]): HostResolver {
    const dns = policies.flatMap(({ document }) => document.net?.dns ?? []);
    const named = dns.flatMap(({ refresh_secs }) => refresh_secs ?? []);
    const options = {
      servers: dns.find(({ servers }) => servers !== undefined)?.servers ?? [],
      refreshSecs: named.length === 0 ? DEFAULT_REFRESH_SECS : Math.min(...named),
    };
    const key = JSON.stringify(options);
    const known = this.#resolvers.get(key) ?? new HostResolver(options);
    this.#resolvers.set(key, known);
    return known;
  }
}

function keyOf({ hash }: Effective, project: string): string {
  return `${hash} ${project}`;
}

function isSame(
  some: readonly (Expansion | undefined)[],
  others: readonly (Expansion | undefined)[],
): boolean {
  return some.length === others.length && some.every((one, index) => one === others[index]);
}

/** Rules of policies, and what a token adds to them. Pure. */

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
