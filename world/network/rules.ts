/** The rules of a world's network as nft reads them: one transaction, so that there is no moment without rules. Pure. */
import type { NetworkRules } from "../model/network.ts";

/** Stands for names (RFC 2544's range for benchmarks, which nobody routes). */
export const SYNTHETIC = "198.18.0.0/15";

/** The world's own address beside localhost: what its servers tell people to open. No name ever gets it. */
const OWN = "198.19.255.254";

/**
 * `nft -f` text in one line: nothing in it needs an escape in JSON.
 *
 * What is dialled by name, on a port that some name has, and by address, in a range that the policy names, is brought to the
 * listener. What is to the world's own localhost passes. All else is refused at once: TCP with a reset, because a local client
 * that is only told by ICMP waits for its time-out; the rest, and all of IPv6, as prohibited (RFC 1812, 5.2.7.1).
 *
 * @param listener port of the one listener inside.
 * @param place whether there may be earlier rules. Looking for some in a new namespace, to delete them, is not free: the
 *   kernel waits there until every processor has seen that they are gone (RCU), 10 ms where the rules alone take 3.
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
    // The resets below are packets too, and come past here.
    "tcp flags & rst == rst accept",
    `${own} accept`,
    "ip6 daddr ::1 accept",
    "meta l4proto tcp reject with tcp reset",
    "reject with icmpx type admin-prohibited",
  ];
  return [
    // To delete what is not there would fail: it is made first.
    ...(place === "new" ? [] : ["table inet substrate", "delete table inet substrate"]),
    `table inet substrate { ${chain("capture", "nat", "dstnat", "accept", [`${own} accept`, ...capture])} ${chain("refuse", "filter", "filter", "drop", refuse)} }`,
  ].join("; ");
}

/** Both hooks are those of packets that start here: in this namespace nothing else does. */
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
 * One rule for all ranges with the same ports. A transaction is one message, as large as the socket's buffer
 * (net.core.wmem_max, for an ordinary user): of single rules it holds some hundred, of a set's elements some thousand.
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

/** Ranges may overlap in it: nft merges those of a set without a name. */
function setOf(cidrs: readonly string[]): string {
  return cidrs.length === 1 ? cidrs.join() : `{ ${cidrs.join(", ")} }`;
}

function matches(where: string, ports: NetworkRules["ports"]): readonly string[] {
  if (ports === "any") return [`${where} meta l4proto tcp`];
  return ports.length === 0 ? [] : [`${where} tcp dport { ${ports.join(", ")} }`];
}

/** Where each name has its ports, and each range its own, and nobody redirects: the ports that are listened on. */
export function listenedPorts({ ports, ranges }: NetworkRules): readonly number[] {
  const all = [ports, ...ranges.map((range) => range.ports)].map((some) =>
    some === "any" ? USUAL_PORTS : some,
  );
  return [...new Set(all.flat())].sort((one, other) => one - other);
}

const USUAL_PORTS = [22, 80, 443];
