import { join } from "node:path";
import type { ConfigDocument } from "../../schemas/generated/types.ts";
import { isWithin } from "../model/folders.ts";
import type { Listed } from "./listed.ts";

/** The name of the policy that the operator gives: by the nearest project folder, else by agent, else `default`. */
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
 * The policies of the other folders that commands of a project may write to, by the policy that holds for it: a folder below
 * the project, or below, around or at another place of its `fs.write`. Each of them narrows. A folder around the project does
 * not: the nearest one gave the policy already.
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

/** Every policy that the operator gives to somebody. */
export function assignedPolicies({ policies, agents = {} }: ConfigDocument): readonly string[] {
  const toAgents = Object.values(agents).flatMap((agent) => agent?.policy ?? []);
  return [...new Set(["default", ...Object.values(policies?.projects ?? {}), ...toAgents])];
}

/** Whether an agent's name is one that its caller chose: whoever has a socket of its own cannot choose. */
export function isLabel({ agents = {} }: ConfigDocument, agent: string): boolean {
  return !Object.hasOwn(agents, agent);
}

/** A configured path with `~` and `$HOME` at its start replaced. */
export function inHome(path: string, home: string): string {
  const variable = /^(~|\$HOME)(?=\/|$)/.exec(path)?.[0];
  const full = variable === undefined ? path : join(home, path.slice(variable.length));
  return full.length > 1 ? full.replace(/\/+$/, "") : full;
}
