/** Shared parts of all presets. */
import { hostName, type HostPort } from "../names/names.ts";
import { contains, readAddress, readRange } from "../names/ranges.ts";
import type { HostTools } from "./host-tools.ts";

/** The hosts of a preset on this host now. */
export type Expansion = {
  readonly entries: readonly HostPort[];
  /** Sentences about omissions and their reasons: `@cargo: cargo is not installed`. */
  readonly notes: readonly string[];
  /** Lines of npm's settings naming the user's registries, for worlds that hide the user's file. No credentials. */
  readonly settings?: readonly string[];
};

/** Sources of presets: the host as set by its operator, never a file that a command could have written. */
export type PresetHost = {
  /** The broker's own environment variables, including PATH. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Real path of the home folder of the broker's user. */
  readonly home: string;
  /**
   * Whether a command in any world may write this path or a path below. Programs there are not run and settings there
   * do not count: their author could choose the hosts that its commands may reach.
   */
  readonly mayBeWritten: (path: string) => boolean;
};

/** A preset answered by a tool of the host. */
export type ToolPreset = {
  /** The tool's settings files; a change makes the broker ask the tool again. Absolute, existing or not. */
  readonly settings: (host: PresetHost) => readonly string[];
  /** Asks for the tool's download URLs; a sentence when they are unknown. */
  readonly ask: (tools: HostTools) => Promise<Urls | string>;
};

export type Urls = {
  readonly urls: readonly string[];
  readonly notes?: readonly string[];
  readonly settings?: readonly string[];
};

/** Converts URLs into entries. An unreachable host adds a note; a URL without host adds nothing. */
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

/** Makes an expansion without hosts, with the reason. */
export function standsForNothing(preset: string, why: string): Expansion {
  return expansionOf(preset, { urls: [], notes: [why] });
}

/** Default ports by scheme: RFC 9110, 4.2, and git-clone(1), "GIT URLS". */
const PORTS: Readonly<Record<string, number>> = {
  http: 80,
  https: 443,
  ssh: 22,
  git: 9418,
  ftp: 21,
  ftps: 990,
};

/** Returns host and port of a URL; a sentence when a world cannot reach the host; undefined for a URL without host. */
function placeOf(url: string): HostPort | string | undefined {
  // The part before a `+` is dropped: `sparse+https` (cargo), `git+ssh` (git), `mirror+http` (apt).
  const [, scheme = "", rest = ""] = /^(?:[a-z]+\+)?([a-z]+):\/\/(.*)$/is.exec(url.trim()) ?? [];
  const port = PORTS[scheme.toLowerCase()];
  if (port === undefined) return undefined;
  // The URL standard parses a host only after a known scheme, and drops that scheme's default port.
  const [http, https] = [`http://${rest}`, `https://${rest}`];
  if (!URL.canParse(http)) return "left out an address that cannot be read";
  const { hostname, port: written } = new URL(http);
  const explicit = written === "" ? new URL(https).port : written;
  return reachable(hostname, explicit === "" ? port : Number(explicit));
}

/** The host itself, and link-local addresses, assigned by its network (RFC 3927). */
const OWN = ["127.0.0.0/8", "0.0.0.0/8", "169.254.0.0/16"].flatMap((text) => readRange(text) ?? []);

function reachable(hostname: string, port: number): HostPort | string | undefined {
  const address = readAddress(hostname.replace(/^\[|\]$/g, ""));
  if (address === null) return named(hostname, port);
  if (address.family === 6) return `left out '${hostname}': a world has no IPv6`;
  return OWN.some((range) => contains(range, address)) ? hostsOwn(hostname, port) : { host: hostname, port };
}

function named(hostname: string, port: number): HostPort | string {
  const host = hostName(hostname);
  if (host === null) return "left out an invalid host name";
  return /(?:^|\.)localhost$/.test(host) ? hostsOwn(host, port) : { host, port };
}

function hostsOwn(host: string, port: number): string {
  return `'${host}' is the host's own: a world reaches it as host.internal, when net.allowed has 'host.internal:${port}'`;
}

export function eachOnce(entries: readonly HostPort[]): readonly HostPort[] {
  return [...new Map(entries.map((entry) => [`${entry.host}:${entry.port}`, entry])).values()];
}

export function jsonObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { ...value } : undefined;
  } catch {
    // Not JSON: a tool too old for the option, or another program of the same name.
    return undefined;
  }
}
