/** A launch into a network that is made for it. */
import type { NetworkRules } from "../model/network.ts";
import { WorldUnavailable } from "../model/unavailable.ts";
import type { NetworkHelper } from "./helper.ts";

/** A world's network; without one, why. */
export type Networked = { readonly network: NetworkHelper | undefined; readonly refusal: string | undefined };

/** Where a host makes no network, a world has its own localhost and nothing else, and says so. Aborting still throws. */
export async function startNetwork(
  start: (signal: AbortSignal) => Promise<NetworkHelper>,
  refusal: string | undefined,
  signal: AbortSignal,
): Promise<Networked> {
  if (refusal !== undefined) return { network: undefined, refusal };
  try {
    return { network: await start(signal), refusal: undefined };
  } catch (error) {
    if (signal.aborted || !(error instanceof WorldUnavailable)) throw error;
    return { network: undefined, refusal: error.message };
  }
}

/**
 * Makes the world while the network gets its rules: a second program that starts costs nothing that way on two processors.
 * When either fails no world is left behind; the network is its owner's to end.
 */
export async function launchBeside<Launched extends { readonly channel: { destroy(): void } }>(
  network: NetworkHelper | undefined,
  rules: NetworkRules,
  launch: () => Promise<Launched>,
): Promise<Launched> {
  const [ruled, launched] = await Promise.allSettled([network?.allow(rules), launch()]);
  if (launched.status === "fulfilled" && ruled.status === "fulfilled") return launched.value;
  if (launched.status === "rejected") throw launched.reason;
  launched.value.channel.destroy();
  throw (ruled as PromiseRejectedResult).reason;
}

/**
 * The isolation vector's word for `net`, as it is now: `on` when nothing leaves but what the rules name, and that does.
 *
 * @param rules those that the world was made with; a network knows its newest itself.
 * @param alone whether init has unshared an empty namespace, as it does without a network to join.
 */
export function networkWord({ network, refusal }: Networked, rules: NetworkRules, alone: boolean): string {
  if (network !== undefined) return network.word;
  if (!alone) return "off: not unshared";
  const asks = rules.ports.length > 0 || rules.ranges.length > 0;
  return asks ? `degraded: nothing can be reached: ${refusal ?? "unknown"}` : "on";
}
