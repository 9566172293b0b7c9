/** Resolves the target of a captured connection and picks the addresses that may be dialled. */
import { setMaxListeners } from "node:events";
import type { Bound } from "./bound.ts";
import { internalRange, type OwnAddresses } from "./names/internal-addresses.ts";
import { HOST_INTERNAL } from "./names/names.ts";
import { judgeBy, type Judgement, type Reach } from "./reach.ts";

/** The target of a connection: a name, or a literal address that a CIDR entry may cover. */
export type Target = {
  readonly kind: "name" | "address";
  readonly host: string;
  readonly port: number;
};

/** Addresses to dial, or why there are none; `refused` when a rule refused all, not the network. */
export type Led =
  | { readonly kind: "addresses"; readonly addresses: readonly string[] }
  | { readonly kind: "nowhere"; readonly refused: boolean; readonly why: string };

/** The host's own localhost, reachable from a world only as `host.internal`. */
const HOST_ADDRESS = "127.0.0.1";

export function judgeTarget(reach: Reach, { kind, host, port }: Target): Judgement {
  const judged = judgeBy(reach, (rules) =>
    kind === "name" ? rules.connection(host, port) : rules.address(host, port),
  );
  // An observing policy blocks no connection to the outside; `host.internal` never leaves the host.
  return host === HOST_INTERNAL ? { ...judged, blocked: judged.denied } : judged;
}

/** Resolves a target. `asked` bounds the world's concurrent lookups. Throws the signal's reason. */
export async function leadTarget(
  reach: Reach,
  target: Target,
  own: OwnAddresses,
  signal: AbortSignal,
  asked: Bound,
): Promise<Led> {
  const { kind, host, port } = target;
  if (host === HOST_INTERNAL && kind === "name") return { kind: "addresses", addresses: [HOST_ADDRESS] };
  setMaxListeners(0, signal);
  const found =
    kind === "address"
      ? { addresses: [host] }
      : addressesIn(await reach.resolver.resolve(host, signal, asked));
  if ("code" in found)
    return {
      kind: "nowhere",
      refused: false,
      why: unresolvedWords(host, found.code),
    };
  const ranges = found.addresses.map((address) => [address, rangeOf(reach, address, port, own)] as const);
  const open = ranges.filter(([, range]) => range === null).map(([address]) => address);
  if (open.length > 0) return { kind: "addresses", addresses: open };
  const closed = ranges.map(([address, range]) => `${address} (${range})`).join(", ");
  const named = kind === "name" ? `'${host}' resolves to ${closed}` : closed;
  return {
    kind: "nowhere",
    refused: true,
    why: `${named}: refused unless a CIDR entry of net.allowed covers it`,
  };
}

/**
 * The resolver's code when the host cannot resolve a name; null when it can, or has not answered before `limit`. `asked` as
 * for {@link leadTarget}.
 */
export async function whyUnresolved(
  { resolver }: Reach,
  name: string,
  limit: AbortSignal,
  asked: Bound,
): Promise<string | null> {
  setMaxListeners(0, limit);
  try {
    const resolution = await resolver.resolve(name, limit, asked);
    return resolution.kind === "found" ? null : resolution.code;
  } catch (error) {
    if (limit.aborted) return null;
    throw error;
  }
}

export function unresolvedWords(name: string, code: string): string {
  return `'${name}' cannot be resolved on the host: ${code}`;
}

/** Whether the current policies still allow an open connection's resolved address. */
export function mayLeadTo(
  reach: Reach,
  { kind, host, port }: Target,
  address: string,
  own: OwnAddresses,
): boolean {
  return (kind === "name" && host === HOST_INTERNAL) || rangeOf(reach, address, port, own) === null;
}

/** The internal range of an address, or that the address is the host's own; null when dialling is allowed. */
function rangeOf(reach: Reach, address: string, port: number, own: OwnAddresses): string | null {
  if (reach.all.covers(address, port)) return null;
  return internalRange(address) ?? (own.has(address) ? "the host's own" : null);
}

function addressesIn(
  resolution: Awaited<ReturnType<Reach["resolver"]["resolve"]>>,
): { readonly addresses: readonly string[] } | { readonly code: string } {
  return resolution.kind === "found" ? { addresses: resolution.addresses } : { code: resolution.code };
}
