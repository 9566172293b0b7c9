/** Computes the network rules and limits of a policy, with presets as last known. */
import { BoundedMap } from "../model/bounded-map.ts";
import type { NetworkRules } from "../../world/backend.ts";
import { type Allowance, allowanceOf } from "../budgets/limits.ts";
import { type Effective, hasNetworkRules } from "../model/effective.ts";
import type { CompiledPolicy } from "../policy/index.ts";
import { type NetEntry, type PolicyNet, type PresetName, presetsIn } from "./names/entries.ts";
import type { Expansion } from "./presets/preset.ts";
import type { Presets } from "./presets/presets.ts";
import { HostResolver } from "./resolver.ts";
import type { HostPort } from "./names/names.ts";
import { type NetRange, type NetRules, netRules, type NetVerdict } from "./rules.ts";
import type { AddressRange } from "./names/ranges.ts";

export type Reach = {
  readonly effective: Effective;
  /** Rules of the enforcing policies and a token; their refusals take effect. Null when all policies only observe. */
  readonly enforced: NetRules | null;
  /** Rules of all policies and a token; their refusals are recorded. */
  readonly all: NetRules;
  /** Ports and ranges to route to the gateway. */
  readonly captured: NetworkRules;
  readonly resolver: HostResolver;
  /** Undefined: unlimited. */
  readonly bytesPerSecond: number | undefined;
  /** The budget of each policy. */
  readonly allowances: readonly Allowance[];
};

/**
 * A verdict of the policies. `blocked`: refused in fact. `denied`: refused by the policies, blocked or not. `verdict`:
 * of the blocking policy, if any: editing an observing policy that also refuses would not help.
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

/** Bound of the cache by policy and project; an item takes some kilobytes. */
const MAX_MADE = 256;

type Made = {
  readonly reach: Reach;
  readonly expansions: readonly (Expansion | undefined)[];
  freshUntil: number;
};

/** Milliseconds until presets are checked again: each check makes a dozen file system calls. */
const FRESH_MS = 1000;

export class Reaches {
  readonly #presets: Presets;
  readonly #resolvers = new Map<string, HostResolver>();
  readonly #made = new BoundedMap<string, Made>(MAX_MADE);
  /** Last answer by preset and project, used while a newer answer is fetched. */
  readonly #expansions = new Map<string, Expansion>();

  constructor(presets: Presets) {
    this.#presets = presets;
  }

  /** Returns the reach with current presets. A preset's first use waits for the preset's tool. */
  async fresh(effective: Effective, project: string): Promise<Reach> {
    const known = this.#made.get(keyOf(effective, project));
    if (known !== undefined && performance.now() < known.freshUntil) return known.reach;
    for (const policy of effective.policies)
      for (const [name, expansion] of await this.#presets.expandAll(policy.net, project))
        this.#expansions.set(`${name} ${project}`, expansion);
    return this.#of(effective, project, performance.now() + FRESH_MS);
  }

  /** Asks the tools of all presets but `@git`, which depends on the project: {@link fresh} then need not wait. */
  askAhead(net: PolicyNet): void {
    for (const name of presetsIn(net)) if (name !== "@git") void this.#presets.expand(name, "/");
  }

  /** Returns the reach at once, with presets as last known. A preset never asked for allows nothing yet. */
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
    const policies = effective.policies.filter(hasNetworkRules);
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
      allowances: effective.policies.map(({ document }) => allowanceOf(document)),
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

  /** Worlds with the same servers share a resolver, so a name is resolved once for all. */
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

/**
 * Adds the entries of a token to the rules. Only the policies' own entries cover internal addresses: a person granting
 * a name or range has not seen its addresses.
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

/** When both refuse, the policies' verdict counts: a person can change the policies' own list. */
function mildest(rules: NetVerdict, granted: NetVerdict): NetVerdict {
  return rules.allowed || !granted.allowed ? rules : granted;
}

function inEither(some: readonly number[], others: readonly number[]): readonly number[] {
  return [...new Set([...some, ...others])].sort((one, other) => one - other);
}
