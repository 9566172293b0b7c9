/** What every preset has in common. */
import { hostName, type HostPort } from "../names/names.ts";
import { contains, readAddress, readRange } from "../names/ranges.ts";
import type { HostTools } from "./host-tools.ts";

/** What a preset stands for on this host now. */
export type Expansion = {
  readonly entries: readonly HostPort[];
  /** Sentences about what it does not stand for, and why: `@cargo: cargo is not installed`. */
  readonly notes: readonly string[];
  /** Lines of npm's settings by which npm looks there also where it does not see the user's file. No credentials. */
  readonly settings?: readonly string[];
};

/** What presets are read from: the host as its operator has set it, and no file that a command could have written. */
export type PresetHost = {
  /** The broker's own variables, PATH among them. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Real path of the home folder of the broker's user. */
  readonly home: string;
  /**
   * Whether a command in some world may write this path, or something below it. A program there is not run, and settings
   * there do not count: whoever wrote them would choose where their commands may connect to.
   */
  readonly mayBeWritten: (path: string) => boolean;
};

/** A preset that a tool of the host is asked for. */
export type ToolPreset = {
  /** Files that say what the tool is set to; when one changes, the tool is asked again. Absolute, existing or not. */
  readonly settings: (host: PresetHost) => readonly string[];
  /** URLs that the tool downloads from. A sentence when they cannot be told. */
  readonly ask: (tools: HostTools) => Promise<Urls | string>;
};

export type Urls = {
  readonly urls: readonly string[];
  readonly notes?: readonly string[];
  readonly settings?: readonly string[];
};

/** URLs as entries. What cannot be reached from a world gives a note; what leads to no host gives nothing. */
export function expansionOf(preset: string, { urls, notes = [], settings = [] }: Urls): Expansion {
  const places = urls.map(placeOf);
  const entries = places.filter((place): place is HostPort => typeof place === "object");
  const unreachable = places.filter((place) => typeof place === "string");
  return {
    entries: eachOnce(entries),
    notes: [...new Set([...notes, ...unreachable])].map((note) => `${preset}: ${note}`),
    settings,
  };
}

/** No hosts, and why. */
export function standsForNothing(preset: string, why: string): Expansion {
  return expansionOf(preset, { urls: [], notes: [why] });
}

/** By scheme, for URLs without a port: RFC 9110, 4.2, and git-clone(1), "GIT URLS". */
const PORTS: Readonly<Record<string, number>> = {
  http: 80,
  https: 443,
  ssh: 22,
  git: 9418,
  ftp: 21,
  ftps: 990,
};

/** Host and port of a URL; a sentence when a world cannot reach it; undefined when it leads to no host. */
function placeOf(url: string): HostPort | string | undefined {
  // With what stands before a `+`: `sparse+https` (cargo), `git+ssh` (git), `mirror+http` (apt).
  const [, scheme = "", rest = ""] = /^(?:[a-z]+\+)?([a-z]+):\/\/(.*)$/is.exec(url.trim()) ?? [];
  const port = PORTS[scheme.toLowerCase()];
  if (port === undefined) return undefined;
  // The URL standard reads a host as a host only behind such a scheme, and leaves out the port that is its own.
  const [http, https] = [`http://${rest}`, `https://${rest}`];
  if (!URL.canParse(http)) return "an address that cannot be read is left out";
  const { hostname, port: written } = new URL(http);
  const explicit = written === "" ? new URL(https).port : written;
  return reachable(hostname, explicit === "" ? port : Number(explicit));
}

/** The host itself, and what a machine is told by its own network (RFC 3927). */
const OWN = ["127.0.0.0/8", "0.0.0.0/8", "169.254.0.0/16"].flatMap((text) => readRange(text) ?? []);

function reachable(hostname: string, port: number): HostPort | string | undefined {
  const address = readAddress(hostname.replace(/^\[|\]$/g, ""));
  if (address === null) return named(hostname, port);
  if (address.family === 6) return `'${hostname}' is left out: a world has no IPv6`;
  return OWN.some((range) => contains(range, address)) ? hostsOwn(hostname, port) : { host: hostname, port };
}

function named(hostname: string, port: number): HostPort | string {
  const host = hostName(hostname);
  if (host === null) return "a host whose name cannot be one is left out";
  return /(?:^|\.)localhost$/.test(host) ? hostsOwn(host, port) : { host, port };
}

function hostsOwn(host: string, port: number): string {
  return `'${host}' is the host's own: a world reaches it as host.internal, when net.allowed has 'host.internal:${port}'`;
}

export function eachOnce(entries: readonly HostPort[]): readonly HostPort[] {
  return [...new Map(entries.map((entry) => [`${entry.host}:${entry.port}`, entry])).values()];
}
