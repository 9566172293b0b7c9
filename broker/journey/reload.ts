import { isRefusal, type Refusal } from "../model/refusal.ts";
import type { PolicyReloadReply, PolicyReply } from "../../schemas/generated/types.ts";
import type { Broker } from "../broker.ts";

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

/** A policy as it holds now: of a file that does not load, the last good one, and what is wrong with the file. */
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
