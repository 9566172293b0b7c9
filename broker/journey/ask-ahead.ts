import { assignedPolicies } from "../policies/assignment.ts";
import type { Broker } from "../broker.ts";

/**
 * Asks npm for its settings before the first world starts; a world made before npm answers lacks npm's settings. Reads every
 * assigned policy first: a program writable by commands under any assigned policy is never run on the host.
 */
export function askAhead({ config, policies, npmRetries }: Broker): void {
  for (const name of assignedPolicies(config())) policies.show(name);
  if (policies.documents().some(({ mode }) => mode === "enforce")) void npmRetries.ask();
}
