/** Which names, addresses and ports `net.allowed` allows. Pure: presets come expanded. */
import { type HostPort, HOST_INTERNAL, hostName } from "./names/names.ts";
import type { NetEntry, PolicyNet, PresetName } from "./names/entries.ts";
import { allOf } from "./joint-rules.ts";
import { type AddressRange, contains, isWithin, rangeText, readAddress, readRange } from "./names/ranges.ts";

/** Ports of an entry that names none (CONTRACT §7). */
export const DEFAULT_PORTS: readonly number[] = [80, 443, 22];

export type NetVerdict = {
  readonly allowed: boolean;
  /** The entry that allowed, as it stands in the policy; null when refused. */
  readonly entry: string | null;
  /** `default.yaml:12`, of the entry; of `net.allowed`, or what is nearest to it, when refused. */
  readonly source: string;
};

/** What each preset of a policy stands for now. One that is missing stands for nothing. */
export type ExpandedPresets = ReadonlyMap<PresetName, { readonly entries: readonly HostPort[] }>;

/** Names are taken in any spelling; what is no name (`hostName`) is refused. Ports are 1 to 65535. */
export interface NetRules {
  /** Whether a name may be looked up at all: on some port. */
  name(name: string): NetVerdict;
  /** Whether a connection to this name and port may be made. `host.internal` only by an entry of just that name. */
  connection(name: string, port: number): NetVerdict;
  /** Whether one dialled by address may. */
  address(address: string, port: number): NetVerdict;
  /**
   * Whether an entry covers an address that an allowed name led to, which lifts the refusal of internal addresses. An
   * entry without ports covers every one: the name's own entry has said which port.
   */
  covers(address: string, port: number): boolean;
  /** The same of every address of a range, by one entry. */
  coversRange(range: AddressRange, port: number): boolean;
  /** The ports on which a name is allowed, ascending; none for a name that is not. */
  portsOf(name: string): readonly number[];
  /** Every port that some entry by name has, ascending. */
  readonly ports: readonly number[];
  /** IPv4 ranges that may be dialled by address, with their ports, ascending. */
  readonly ranges: readonly NetRange[];
  /** Nothing can be reached, by name or by address. */
  readonly isEmpty: boolean;
}

export type NetRange = { readonly cidr: string; readonly ports: readonly number[] };

type Allowance = Pick<NetEntry, "written" | "source">;

/** By port, the first entry that allows it. */
type Ports = Map<number, Allowance>;

type RangeRule = {
  readonly range: AddressRange;
  readonly ports: readonly number[];
  readonly everyPort: boolean;
  readonly entry: Allowance;
};

/** The rules that hold when all these policies must allow, each with what its presets stand for. None: nothing. */
export function netRules(
  policies: readonly { readonly net: PolicyNet; readonly presets: ExpandedPresets }[],
): NetRules {
  return allOf(policies.map(({ net, presets }) => new EntryRules(net, presets)));
}

/** The rules of one policy. Immutable once made. */
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

  /** What a tool is set to is never the host's own localhost: that takes an entry which says so. */
  #addPlace({ host, port }: HostPort, entry: Allowance): void {
    const range = readRange(host);
    const name = hostName(host);
    if (range !== null) this.#addRange(range, [port], entry);
    else if (name !== null && name !== HOST_INTERNAL) allow(this.#names, name, [port], entry);
  }

  #addRange(range: AddressRange, ports: readonly number[], entry: Allowance): void {
    this.#ranges.push({ range, ports: withDefault(ports), everyPort: ports.length === 0, entry });
  }

  /** What entries say of a name: those of its own, then those of what it lies below, the nearest first. */
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
