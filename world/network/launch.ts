/** Launches a world into a network made for that world. */
import type { NetworkRules } from "../model/network.ts";
import { WorldUnavailable } from "../model/unavailable.ts";
import type { NetworkHelper } from "./helper.ts";

/** A world's network, or the reason for its absence. `beside`: the world keeps the host's network namespace. */
export type Networked = {
  readonly network: NetworkHelper | undefined;
  readonly refusal: string | undefined;
  readonly beside?: true;
};

const HOST_NETWORK =
  "off: the host's network (world.isolate_network: false): every host and every server of this machine's localhost can be reached, and no byte is counted";

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
 * Leaves the world in the host's network namespace. `refusal`: why the backend's worlds join no network. Throws
 * {@link WorldUnavailable} with a refusal: a container's network is not the host's.
 */
export function hostsNetwork(refusal: string | undefined): Networked {
  if (refusal !== undefined)
    throw new WorldUnavailable(
      "Cannot give a world the host's network (world.isolate_network: false): worlds are containers here, with networks of their own",
      "Remove 'isolate_network: false' from the policy, and list the wanted hosts in net.allowed",
    );
  return { network: undefined, refusal, beside: true };
}

/**
 * Throws {@link WorldUnavailable} where init does not judge connects: the host's Unix sockets would be open to a command in the
 * host's network namespace.
 */
export function requireJudged({
  gated,
  channel,
}: {
  readonly gated: boolean;
  readonly channel: { destroy(): void };
}): void {
  if (gated) return;
  channel.destroy();
  throw new WorldUnavailable(
    "Cannot give a world the host's network (world.isolate_network: false): this kernel does not report connects, or another sandbox receives the reports, so the host's Unix sockets would be open",
    "Remove 'isolate_network: false' from the policy, or run the broker outside of the other sandbox (Linux 5.5 or newer)",
  );
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
export function networkWord(
  { network, refusal, beside }: Networked,
  rules: NetworkRules,
  alone: boolean,
): string {
  if (network !== undefined) return network.word;
  if (beside === true) return HOST_NETWORK;
  if (!alone) return "off: not unshared";
  const asks = rules.ports.length > 0 || rules.ranges.length > 0;
  return asks ? `degraded: no host can be reached: ${refusal ?? "unknown"}` : "on";
}
