/** Where a captured connection is to go, and which of the addresses there may be dialled. */
import { setMaxListeners } from "node:events";
import type { Bound } from "./bound.ts";
import { internalRange, type OwnAddresses } from "./names/internal-addresses.ts";
import { HOST_INTERNAL } from "./names/names.ts";
import { judgeBy, type Judgement, type Reach } from "./reach.ts";

/** By name, or by an address that a CIDR entry may cover. */
export type Target = {
  readonly kind: "name" | "address";
  readonly host: string;
  readonly port: number;
};

/** Where it leads, or why nowhere; `refused` when it is our rule and not the network that says so. */
export type Led =
  | { readonly kind: "addresses"; readonly addresses: readonly string[] }
  | { readonly kind: "nowhere"; readonly refused: boolean; readonly why: string };

/** The host's own localhost, which has this one name inside (CONTRACT §7). */
const HOST_ADDRESS = "127.0.0.1";

export function judgeTarget(reach: Reach, { kind, host, port }: Target): Judgement {
  const judged = judgeBy(reach, (rules) =>
    kind === "name" ? rules.connection(host, port) : rules.address(host, port),
  );
  // What observes blocks no connection to the outside; this one never leaves the host.
  return host === HOST_INTERNAL ? { ...judged, blocked: judged.denied } : judged;
}

/** `asked`: how many names of its world may be resolved at once. Throws the signal's reason. */
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
      why: `'${host}' cannot be resolved on the host: ${found.code}`,
    };
  const ranges = found.addresses.map((address) => [address, rangeOf(reach, address, port, own)] as const);
  const open = ranges.filter(([, range]) => range === null).map(([address]) => address);
  if (open.length > 0) return { kind: "addresses", addresses: open };
  const closed = ranges.map(([address, range]) => `${address} (${range})`).join(", ");
  const named = kind === "name" ? `'${host}' leads to ${closed}` : closed;
  return {
    kind: "nowhere",
    refused: true,
    why: `${named}: refused unless a CIDR entry of net.allowed covers it`,
  };
}

/** Whether a target may still lead to an address that it led to, by the policies as they are now. */
export function mayLeadTo(
  reach: Reach,
  { kind, host, port }: Target,
  address: string,
  own: OwnAddresses,
): boolean {
  return (kind === "name" && host === HOST_INTERNAL) || rangeOf(reach, address, port, own) === null;
}

/** The special range that an address is in, or that it is the host's own; null when it may be dialled. */
function rangeOf(reach: Reach, address: string, port: number, own: OwnAddresses): string | null {
  if (reach.all.covers(address, port)) return null;
  return internalRange(address) ?? (own.has(address) ? "the host's own" : null);
}

function addressesIn(
  resolution: Awaited<ReturnType<Reach["resolver"]["resolve"]>>,
): { readonly addresses: readonly string[] } | { readonly code: string } {
  return resolution.kind === "found" ? { addresses: resolution.addresses } : { code: resolution.code };
}
