/** Writes the rules of a world's network for nft, as one transaction, so that there is never a moment without rules. Pure. */
import type { NetworkRules } from "../model/network.ts";

/** Addresses representing host names (RFC 2544's benchmark range, never routed). */
export const SYNTHETIC = "198.18.0.0/15";

/** The world's own address besides localhost, shown to people by the world's servers. Never assigned to a name. */
const OWN = "198.19.255.254";

/**
 * Returns `nft -f` text as one line without characters that JSON escapes.
 *
 * Connections to a name on a permitted port, and to an address in a permitted range, are redirected to the listener. Connections
 * to the world's own localhost pass. Everything else is refused at once: TCP with a reset, because a local client would ignore
 * ICMP until its time-out; the rest, and all of IPv6, as prohibited (RFC 1812, 5.2.7.1).
 *
 * @param listener port of the only listener inside.
 * @param place `ruled` if earlier rules may exist. Deleting rules in a new namespace, just in case, is slow: the kernel waits
 * until every processor has seen the deletion (RCU), 10 ms, where the rules alone take 3.
 */
export function rulesText(rules: NetworkRules, listener: number, place: "new" | "ruled"): string {
  const own = `ip daddr { 127.0.0.0/8, ${OWN} }`;
  const redirect = `redirect to :${listener}`;
  const capture = [
    ...matches(`ip daddr ${SYNTHETIC}`, rules.ports),
    ...byPorts(rules.ranges).flatMap(({ cidrs, ports }) => matches(`ip daddr ${setOf(cidrs)}`, ports)),
  ].map((match) => `${match} ${redirect}`);
  const refuse = [
    "ct status dnat accept",
    "ct state established accept",
    // The resets below are packets too, and pass this chain.
    "tcp flags & rst == rst accept",
    `${own} accept`,
    "ip6 daddr ::1 accept",
    "meta l4proto tcp reject with tcp reset",
    "reject with icmpx type admin-prohibited",
  ];
  return [
    // Deleting a missing table fails, so declare the table first.
    ...(place === "new" ? [] : ["table inet substrate", "delete table inet substrate"]),
    `table inet substrate { ${chain("capture", "nat", "dstnat", "accept", [`${own} accept`, ...capture])} ${chain("refuse", "filter", "filter", "drop", refuse)} }`,
  ].join("; ");
}

/** Both chains hook locally generated packets; this namespace has no others. */
function chain(
  name: string,
  type: string,
  priority: string,
  policy: string,
  rules: readonly string[],
): string {
  const hook = `type ${type} hook output priority ${priority === "dstnat" ? "-100" : priority}; policy ${policy};`;
  return `chain ${name} { ${[hook, ...rules.map((rule) => `${rule};`)].join(" ")} };`;
}

/**
 * Groups ranges with the same ports into one rule. A transaction is one message, limited by the socket's buffer
 * (net.core.wmem_max, for an ordinary user): enough for some hundred single rules, or some thousand elements of a set.
 */
function byPorts(
  ranges: NetworkRules["ranges"],
): readonly { readonly cidrs: readonly string[]; readonly ports: NetworkRules["ports"] }[] {
  const groups = new Map<string, { cidrs: string[]; ports: NetworkRules["ports"] }>();
  for (const { cidr, ports } of ranges) {
    const key = ports.toString();
    const group = groups.get(key) ?? { cidrs: [], ports };
    groups.set(key, group);
    group.cidrs.push(cidr);
  }
  return [...groups.values()];
}

/** Ranges may overlap: nft merges the elements of an anonymous set. */
function setOf(cidrs: readonly string[]): string {
  return cidrs.length === 1 ? cidrs.join() : `{ ${cidrs.join(", ")} }`;
}

function matches(where: string, ports: NetworkRules["ports"]): readonly string[] {
  if (ports === "any") return [`${where} meta l4proto tcp`];
  return ports.length === 0 ? [] : [`${where} tcp dport { ${ports.join(", ")} }`];
}

/** Returns the ports to listen on where nothing redirects: those of all names and ranges together. */
export function listenedPorts({ ports, ranges }: NetworkRules): readonly number[] {
  const all = [ports, ...ranges.map((range) => range.ports)].map((some) =>
    some === "any" ? USUAL_PORTS : some,
  );
  return [...new Set(all.flat())].sort((one, other) => one - other);
}

const USUAL_PORTS = [22, 80, 443];
