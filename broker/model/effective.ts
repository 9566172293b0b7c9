import type { NetEntry } from "../network/names/entries.ts";
import type { CompiledPolicy } from "../policy/index.ts";

/** Policies in force for one command: the assigned policy, and the policies that narrow it. */
export type Effective = {
  readonly policies: readonly [CompiledPolicy, ...CompiledPolicy[]];
  readonly id: string;
  readonly hash: string;
  /** That has the assigned policy as it holds; null outside git, and while nobody has committed it. */
  readonly commit: string | null;
  /** What is wrong with files that do not load and whose last good content holds; undefined when every file loads. */
  readonly stale?: readonly string[];
  /** What a token adds; `hash` is then another one than the policies have. */
  readonly beyond?: Beyond;
};

/** What a token gives one command beyond its policies. */
export type Beyond = {
  /** The policies' own, for records. */
  readonly policyHash: string;
  /** Names and addresses that may be reached as well. */
  readonly net: readonly NetEntry[];
};
