import { isRefusal, type Refusal } from "../model/refusal.ts";
import type { PolicyReloadReply, PolicyReply } from "../../schemas/generated/types.ts";
import type { Broker } from "../broker.ts";

/**
 * Reads every policy and the settings again now, and reports problems. An edit takes effect without a reload, since each decision
 * checks the files.
 */
export function reload(broker: Broker): PolicyReloadReply {
  const policies = broker.policies.reload().map(({ name, policy, problems }) => ({
    name,
    policy_hash: policy?.hash ?? null,
    problems: problems.map(({ text }) => text),
  }));
  return { policies, settings: { problems: broker.reloadSettings().map(({ text }) => text) } };
}

/** Shows a policy in force: for a file that does not load, the last good version and the file's problems. */
export function showPolicyInForce({ policies }: Broker, name: string): PolicyReply | Refusal {
  const found = policies.inForce(name);
  if (isRefusal(found)) return found;
  const { policy, problems, commit } = found;
  return {
    name,
    policy_hash: policy?.hash ?? null,
    policy_commit: commit,
    document: policy === undefined ? null : { ...policy.document },
    problems: problems.map(({ text }) => text),
  };
}
