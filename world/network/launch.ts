/** Launches a world into a network made for that world. */
import type { NetworkRules } from "../model/network.ts";
import { WorldUnavailable } from "../model/unavailable.ts";
import type { NetworkHelper } from "./helper.ts";

/** A world's network, or the reason for its absence. */
export type Networked = { readonly network: NetworkHelper | undefined; readonly refusal: string | undefined };

/** Starts the network. On a host without networks the world has only its own localhost and reports that. Aborting still throws. */
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
 * Makes the world while the network gets its rules: on two processors the second program then costs no extra time. On failure of
 * either, no world is left; the caller ends the network.
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
 * Returns the isolation vector's text for `net`, at present: `on` means that exactly the destinations in the rules are reachable.
 *
 * @param rules the rules at the world's creation; a network knows its own newest rules.
 * @param alone whether init has unshared an empty namespace, as for a world without a network to join.
 */
export function networkWord({ network, refusal }: Networked, rules: NetworkRules, alone: boolean): string {
  if (network !== undefined) return network.word;
  if (!alone) return "off: not unshared";
  const asks = rules.ports.length > 0 || rules.ranges.length > 0;
  return asks ? `degraded: no host can be reached: ${refusal ?? "unknown"}` : "on";
}
