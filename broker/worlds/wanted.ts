import type { NetworkRules, SettingsFile, WorldSpec } from "../../world/backend.ts";

/**
 * What a command wants of its world. `network`: with what it begins; whoever serves it changes that as policies change. `under`: the
 * policies, by name, since what one lets run another must not inherit. `hash`: what those say; under the same words a world keeps the
 * `settings` that it has, so that nothing in it is lost because a tool of the host has answered.
 */
export type Wanted = {
  readonly spec: Omit<WorldSpec, "network" | "settings">;
  readonly network: NetworkRules;
  readonly under: string;
  readonly hash: string;
  readonly settings: readonly SettingsFile[];
};

/** Those of one policy and project are one object most of the time. */
export function isSame(one: object, other: object): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
