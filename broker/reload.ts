import type { PolicyReloadReply } from "../schemas/generated/types.ts";
import type { Broker } from "./broker.ts";

/**
 * Reads every policy and the settings again, now. Nobody needs it for an edit to hold, since each decision compares the
 * file: it tells what holds, and what is wrong with a file that does not load.
 */
export function reload(broker: Broker): PolicyReloadReply {
  const policies = broker.policies.reload().map(({ name, policy, problems }) => ({
    name,
    policy_hash: policy?.hash ?? null,
    problems: problems.map(({ text }) => text),
  }));
  return { policies, settings: { problems: broker.reloadSettings().map(({ text }) => text) } };
}
