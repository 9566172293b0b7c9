import { join } from "node:path";
import type { ConfigDocument } from "../schemas/generated/types.ts";
import { isWithin } from "./projects.ts";

/** The name of the policy that the operator gives: by the nearest project folder, else by agent, else `default`. */
export function assignedPolicy(config: ConfigDocument, agent: string, project: string, home: string): string {
  const folders = Object.entries(config.policies?.projects ?? {}).map(
    ([path, name]) => [inHome(path, home), name] as const,
  );
  const around = folders
    .filter(([folder]) => isWithin(project, folder))
    .sort(([a], [b]) => b.length - a.length);
  return around[0]?.[1] ?? config.agents?.[agent]?.policy ?? "default";
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
