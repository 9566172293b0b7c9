import type { Job } from "./job.ts";
import { type Refusal, refusal } from "./refusal.ts";

/** The refusal of a command that the policy stops; undefined when it may run. */
export function refuseByDecision(job: Job): Refusal | undefined {
  const { verdict, rule, policyId } = job.decision;
  const facts = { policy_id: policyId, rule };
  if (verdict === "deny") {
    const hint =
      "Do the task another way, or ask the operator to change the policy; trying other spellings of the same command gives the same answer";
    return refusal("policy_denied", `Policy '${policyId}' denies this command${because(job)}`, hint, {
      ...facts,
      exit: 126,
    });
  }
  if (verdict === "ask") {
    const hint =
      "Nobody can approve in this version: do the task another way, or ask the operator to move the rule";
    return refusal(
      "approval_required",
      `A person must approve this command first${because(job)}`,
      hint,
      facts,
    );
  }
  return undefined;
}

function because({ decision: { rule } }: Job): string {
  if (rule === null) return "";
  const reason = rule.reason === undefined ? "" : `: ${rule.reason}`;
  return `: '${rule.fragment}' matches '${rule.pattern}' in ${rule.list} (${rule.source})${reason}`;
}
