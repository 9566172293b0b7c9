import { join } from "node:path";
import type { ConfigDocument } from "../../schemas/generated/types.ts";
import { isWithin } from "../model/folders.ts";
import type { Listed } from "./listed.ts";

/** Returns the name of the operator's assigned policy: by the nearest project folder, else by agent, else `default`. */
export function assignedPolicy(
  config: ConfigDocument,
  { policies }: Pick<Listed, "policies">,
  agent: string,
  project: string,
): string {
  const around = policies
    .filter(([folder]) => isWithin(project, folder))
    .sort(([a], [b]) => b.length - a.length);
  return around[0]?.[1] ?? config.agents?.[agent]?.policy ?? "default";
}

/**
 * Returns the policies of other folders that a project's commands may write to, by the project's own policy: a folder below the
 * project, or below, around or at another place of its `fs.write`. Each policy narrows the project's. A folder around the project
 * does not count: the nearest such folder already gave the policy.
 */
export function touchedPolicies(
  { policies }: Pick<Listed, "policies">,
  project: string,
  writable: readonly string[],
): readonly string[] {
  const zones = [project, ...writable.map((path) => path.replace(/\/\*\*$/, "") || "/")];
  const touched = policies.filter(
    ([folder]) =>
      !isWithin(project, folder) && zones.some((zone) => isWithin(folder, zone) || isWithin(zone, folder)),
  );
  return [...new Set(touched.map(([, policy]) => policy))];
}

/** Returns every policy that the operator assigns. */
export function assignedPolicies({ policies, agents = {} }: ConfigDocument): readonly string[] {
  const toAgents = Object.values(agents).flatMap((agent) => agent?.policy ?? []);
  return [...new Set(["default", ...Object.values(policies?.projects ?? {}), ...toAgents])];
}

/** Whether the caller chose the agent's name as a label; an agent with its own socket has a fixed name. */
export function isLabel({ agents = {} }: ConfigDocument, agent: string): boolean {
  return !Object.hasOwn(agents, agent);
}

/** Expands `~` and `$HOME` at the start of a configured path. */
export function inHome(path: string, home: string): string {
  const variable = /^(~|\$HOME)(?=\/|$)/.exec(path)?.[0];
  const full = variable === undefined ? path : join(home, path.slice(variable.length));
  return full.length > 1 ? full.replace(/\/+$/, "") : full;
}
