import { assignedPolicies } from "../policies/assignment.ts";
import type { Broker } from "../broker.ts";

/**
 * Asks npm what it is set to ahead of the first world, which is made without its settings while that is not known. Every
 * assigned policy is read before: a program that one of them lets commands write is not run.
 */
export function askAhead({ config, policies, npmRetries }: Broker): void {
  for (const name of assignedPolicies(config())) policies.show(name);
  if (policies.documents().some(({ mode }) => mode === "enforce")) void npmRetries.ask();
}
