import { DEFAULT_PORTS, type NetRules } from "../network/rules.ts";
import { readEntry } from "../network/names/entries.ts";
import { HOST_INTERNAL, hostName } from "../network/names/names.ts";
import type { Addition } from "./additions.ts";
import type { ObservedConnection } from "./observations.ts";
import { type Seen, seenAlso } from "./observations.ts";

/** A connection that is not proposed, and why. */
export type StoppedConnection = {
  /** `host:port` */
  readonly to: string;
  readonly seen: Seen;
  readonly why: string;
};

export type JudgedConnections = {
  readonly additions: readonly Addition[];
  readonly stopped: readonly StoppedConnection[];
  /** Those that the additions are for. */
  readonly learned: readonly ObservedConnection[];
  /** How many the policy's own entries allow by now. */
  readonly allowed: number;
};

/**
 * What each connection that the policy would have refused needs: an entry with its name, and with its port unless an entry
 * without one has it. `rules`: the policy's as they are now, its presets standing for nothing. Pure.
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

/** Whether rules allow it, by name or by address. */
export function isAllowed(rules: NetRules, { host, port }: ObservedConnection): boolean {
  return hostName(host) === null ? rules.address(host, port).allowed : rules.connection(host, port).allowed;
}

function stopBecause({ host, port, reached, reason }: ObservedConnection): string | undefined {
  if (host === HOST_INTERNAL) return "what listens on the host's own localhost trusts whoever reaches it";
  if (hostName(host) === null)
    return "it was dialled by its address, and nobody sees whose that is: a CIDR entry says so, or the name that it has";
  if (!reached) return `it led nowhere${reason === null ? "" : ` (${reason})`}`;
  return typeof readEntry(entryFor({ host, port })) === "string" ? "no entry can say this name" : undefined;
}

function entryFor({ host, port }: Pick<ObservedConnection, "host" | "port">): string {
  return DEFAULT_PORTS.includes(port) ? host : `${host}:${port}`;
}
