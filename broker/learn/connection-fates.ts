import { DEFAULT_PORTS, type NetRules } from "../network/rules.ts";
import { readEntry } from "../network/names/entries.ts";
import { HOST_INTERNAL, hostName } from "../network/names/names.ts";
import type { Addition } from "./additions.ts";
import type { ObservedConnection } from "./observations.ts";
import { type Seen, seenAlso } from "./observations.ts";

/** A connection left out of the proposal, and why. */
export type StoppedConnection = {
  /** `host:port` */
  readonly to: string;
  readonly seen: Seen;
  readonly why: string;
};

export type JudgedConnections = {
  readonly additions: readonly Addition[];
  readonly stopped: readonly StoppedConnection[];
  /** Connections covered by the additions. */
  readonly learned: readonly ObservedConnection[];
  /** Number of connections that the policy's own entries allow by now. */
  readonly allowed: number;
};

/**
 * Finds the entries for connections that the policy would have refused: an entry with the name, and with the port unless an entry
 * without a port covers the connection. `rules`: the policy's current rules, presets left empty. Pure.
 */
export function judgeConnections(
  rules: NetRules,
  connections: readonly ObservedConnection[],
): JudgedConnections {
  const open = connections.filter((one) => !isAllowed(rules, one));
  const judged = open.map((one) => ({ one, why: stopBecause(one) }));
  const learned = judged.flatMap(({ one, why }) => (why === undefined ? [one] : []));
  const entries = new Map<string, Seen>();
  for (const one of learned) entries.set(entryFor(one), seenAlso(entries.get(entryFor(one)), one.seen));
  return {
    additions: [...entries].map(([value, seen]) => ({ list: "net.allowed", value, seen })),
    stopped: judged.flatMap(({ one: { host, port, seen }, why }) =>
      why === undefined ? [] : [{ to: `${host}:${port}`, seen, why }],
    ),
    learned,
    allowed: connections.length - open.length,
  };
}

/** Whether rules allow a connection, by name or by address. */
export function isAllowed(rules: NetRules, { host, port }: ObservedConnection): boolean {
  return hostName(host) === null ? rules.address(host, port).allowed : rules.connection(host, port).allowed;
}

function stopBecause({ host, port, reached, reason }: ObservedConnection): string | undefined {
  if (host === HOST_INTERNAL)
    return "services on the host's own localhost trust every program that reaches them";
  if (hostName(host) === null)
    return "it was dialled by address, so its host is unknown: add its host name, or a CIDR entry";
  if (!reached) return `the connection failed${reason === null ? "" : ` (${reason})`}`;
  return typeof readEntry(entryFor({ host, port })) === "string"
    ? "net.allowed cannot name this host"
    : undefined;
}

function entryFor({ host, port }: Pick<ObservedConnection, "host" | "port">): string {
  return DEFAULT_PORTS.includes(port) ? host : `${host}:${port}`;
}
