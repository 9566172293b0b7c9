/** Decides which names, addresses and ports `net.allowed` allows. Pure: presets arrive expanded. */
import { type HostPort, HOST_INTERNAL, hostName } from "./names/names.ts";
import type { NetEntry, PolicyNet, PresetName } from "./names/entries.ts";
import { allOf } from "./joint-rules.ts";
import { type AddressRange, contains, isWithin, rangeText, readAddress, readRange } from "./names/ranges.ts";

/** Ports of an entry without ports. */
export const DEFAULT_PORTS: readonly number[] = [80, 443, 22];

export type NetVerdict = {
  readonly allowed: boolean;
  /** The allowing entry as written in the policy; null when refused. */
  readonly entry: string | null;
  /** Position of the entry, such as `default.yaml:12`; when refused, of `net.allowed` or the nearest node. */
  readonly source: string;
};

/** The current hosts of each preset of a policy. A missing preset allows nothing. */
export type ExpandedPresets = ReadonlyMap<PresetName, { readonly entries: readonly HostPort[] }>;

/**
 * Rules of `net.allowed`. Names come in any spelling; an invalid host name (`hostName`) is refused. Ports are 1 to
 * 65535.
 */
export interface NetRules {
  /** Whether a name may be resolved: allowed on some port. */
  name(name: string): NetVerdict;
  /** Whether a connection to `name` and `port` is allowed. `host.internal` needs an entry of exactly that name. */
  connection(name: string, port: number): NetVerdict;
  /** Whether a connection to this literal address and port is allowed. */
  address(address: string, port: number): NetVerdict;
  /**
   * Whether an entry covers an address resolved from an allowed name; then internal addresses are not refused. An entry
   * without ports covers every port, since the name's own entry has limited the port.
   */
  covers(address: string, port: number): boolean;
  /** Whether a single entry covers every address of a range. */
  coversRange(range: AddressRange, port: number): boolean;
  /** The ports on which a name is allowed, ascending; empty for a refused name. */
  portsOf(name: string): readonly number[];
  /** All ports of entries by name, ascending. */
  readonly ports: readonly number[];
  /** IPv4 ranges dialled by literal address, with their ports, ascending. */
  readonly ranges: readonly NetRange[];
  /** Whether every name and address is refused. */
  readonly isEmpty: boolean;
}

export type NetRange = { readonly cidr: string; readonly ports: readonly number[] };

type Allowance = Pick<NetEntry, "written" | "source">;

/** Each port's first allowing entry. */
type Ports = Map<number, Allowance>;

type RangeRule = {
  readonly range: AddressRange;
  readonly ports: readonly number[];
  readonly everyPort: boolean;
  readonly entry: Allowance;
};

/** Builds the rules by which all policies must allow, each with expanded presets. No policies: nothing is allowed. */
export function netRules(
  policies: readonly { readonly net: PolicyNet; readonly presets: ExpandedPresets }[],
): NetRules {
  return allOf(policies.map(({ net, presets }) => new EntryRules(net, presets)));
}

/** The rules of one policy. Immutable. */
class EntryRules implements NetRules {
  readonly #names = new Map<string, Ports>();
  readonly #below = new Map<string, Ports>();
  readonly #ranges: RangeRule[] = [];
  readonly #refused: NetVerdict;
  readonly ports: readonly number[];
  readonly ranges: readonly NetRange[];
  readonly isEmpty: boolean;

  constructor({ entries, source }: PolicyNet, presets: ExpandedPresets) {
    this.#refused = { allowed: false, entry: null, source };
    for (const entry of entries) this.#add(entry, presets);
    const byName = [...this.#names.values(), ...this.#below.values()];
    this.ports = ascending(byName.flatMap((ports) => [...ports.keys()]));
    this.ranges = this.#ranges
      .filter(({ range }) => range.family === 4)
      .map(({ range, ports }) => ({ cidr: rangeText(range), ports: ascending(ports) }));
    this.isEmpty = this.ports.length === 0 && this.ranges.length === 0;
  }

  name(name: string): NetVerdict {
    return this.#verdict(this.#tables(name).flatMap((ports) => [...ports.values()])[0]);
  }

  connection(name: string, port: number): NetVerdict {
    return this.#verdict(
      this.#tables(name)
        .find((ports) => ports.has(port))
        ?.get(port),
    );
  }

  address(address: string, port: number): NetVerdict {
    return this.#verdict(this.#holding(address).find(({ ports }) => ports.includes(port))?.entry);
  }

  covers(address: string, port: number): boolean {
    return this.#holding(address).some((rule) => isOpenOn(rule, port));
  }

  coversRange(wanted: AddressRange, port: number): boolean {
    return this.#ranges.some((rule) => isWithin(wanted, rule.range) && isOpenOn(rule, port));
  }

  portsOf(name: string): readonly number[] {
    return ascending(this.#tables(name).flatMap((ports) => [...ports.keys()]));
  }

  #add({ written, source, allows }: NetEntry, presets: ExpandedPresets): void {
    const entry = { written, source };
    switch (allows.kind) {
      case "name":
        return allow(this.#names, allows.name, withDefault(allows.ports), entry);
      case "below":
        return allow(this.#below, allows.name, withDefault(allows.ports), entry);
      case "range":
        return this.#addRange(allows.range, allows.ports, entry);
      case "preset":
        for (const place of presets.get(allows.preset)?.entries ?? []) this.#addPlace(place, entry);
    }
  }

  /** Adds a preset's host. `host.internal` is skipped: the host's localhost needs an explicit entry. */
  #addPlace({ host, port }: HostPort, entry: Allowance): void {
    const range = readRange(host);
    const name = hostName(host);
    if (range !== null) this.#addRange(range, [port], entry);
    else if (name !== null && name !== HOST_INTERNAL) allow(this.#names, name, [port], entry);
  }

  #addRange(range: AddressRange, ports: readonly number[], entry: Allowance): void {
    this.#ranges.push({ range, ports: withDefault(ports), everyPort: ports.length === 0, entry });
  }

  /** Finds the entries for a name: its own first, then the parent domains' entries, the nearest first. */
  #tables(text: string): readonly Ports[] {
    const name = hostName(text);
    if (name === null) return [];
    const tables = [this.#names.get(name)];
    if (name !== HOST_INTERNAL)
      for (let dot = name.indexOf("."); dot >= 0; dot = name.indexOf(".", dot + 1))
        tables.push(this.#below.get(name.slice(dot + 1)));
    return tables.filter((ports) => ports !== undefined);
  }

  #holding(text: string): readonly RangeRule[] {
    const address = readAddress(text);
    return address === null ? [] : this.#ranges.filter(({ range }) => contains(range, address));
  }

  #verdict(entry: Allowance | undefined): NetVerdict {
    return entry === undefined
      ? this.#refused
      : { allowed: true, entry: entry.written, source: entry.source };
  }
}

function isOpenOn({ ports, everyPort }: RangeRule, port: number): boolean {
  return everyPort || ports.includes(port);
}

function allow(table: Map<string, Ports>, name: string, ports: readonly number[], entry: Allowance): void {
  const known: Ports = table.get(name) ?? new Map();
  table.set(name, known);
  for (const port of ports) if (!known.has(port)) known.set(port, entry);
}

function withDefault(ports: readonly number[]): readonly number[] {
  return ports.length === 0 ? DEFAULT_PORTS : ports;
}

function ascending(ports: readonly number[]): readonly number[] {
  return [...new Set(ports)].sort((one, other) => one - other);
}
