import { assignedPolicies } from "../policies/assignment.ts";
import type { Broker } from "../broker.ts";

/**
 * Asks the tools behind the policies' presets for their settings, and npm for every broker that enforces: the first command would
 * wait for them a second and more, and a world made before npm answers lacks npm's settings. Reads every assigned policy first: a
 * program writable by commands under any assigned policy is never run on the host.
 */
export function askAhead({ config, policies, gateway, npmRetries }: Broker): void {
  const shown = assignedPolicies(config()).map((name) => policies.show(name).policy);
  for (const policy of shown) if (policy !== undefined) gateway.askAhead(policy.net);
  if (policies.documents().some(({ mode }) => mode === "enforce")) void npmRetries.ask();
}
