import type { NetEntry } from "../network/names/entries.ts";
import type { CompiledPolicy } from "../policy/index.ts";

/** Policies in force for one command: the assigned policy, and the policies that narrow it. */
export type Effective = {
  readonly policies: readonly [CompiledPolicy, ...CompiledPolicy[]];
  readonly id: string;
  readonly hash: string;
  /** The commit that contains the assigned policy's current content; null outside git, and for uncommitted content. */
  readonly commit: string | null;
  /** Problems of policy files that do not load while their last good content holds; undefined when every file loads. */
  readonly stale?: readonly string[];
  /** A token's additions; `hash` then differs from the policies' own hash. */
  readonly beyond?: Beyond;
};

/** Additions of a token to one command's policies. */
export type Beyond = {
  /** The hash of the policies alone, for records. */
  readonly policyHash: string;
  /** Additional reachable names and addresses. */
  readonly net: readonly NetEntry[];
};

/** Returns the policy that lets nobody be asked; undefined when every policy does. */
export function silentPolicy({ policies }: Effective): string | undefined {
  return policies.find(({ document }) => document.approval?.interactive === false)?.id;
}

/**
 * Whether commands get the host's network: only if every policy says `world.isolate_network: false`. A policy that isolates
 * narrows the others.
 */
export function sharesHostNetwork(policies: readonly CompiledPolicy[]): boolean {
  return policies.every((policy) => !hasNetworkRules(policy));
}

/** Whether a policy limits names and connections; in the host's network a policy has no say about them. */
export function hasNetworkRules({ document }: CompiledPolicy): boolean {
  return document.world?.isolate_network !== false;
}
