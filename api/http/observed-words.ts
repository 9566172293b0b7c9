/** Tells the caller of a command the verdict that an observing policy would enforce. */
import { because } from "../../broker/model/refusal.ts";
import type { ExecuteReply } from "../../schemas/generated/types.ts";

/** Writes a sentence about the command; undefined if an enforcing policy would run the command the same way. */
export function observedWords({ decision, policy_id: policy }: ExecuteReply): string | undefined {
  const then = THEN[decision.verdict];
  if (then === undefined) return undefined;
  // These lists hold in every mode, so the write or read itself fails.
  const holds = decision.rule?.list.startsWith("fs.") === true ? ", but its fs lists hold" : "";
  return `policy '${policy}' only observes${holds}; with 'mode: enforce' it ${then}${because(decision.rule)}`;
}

const THEN: Readonly<Partial<Record<ExecuteReply["decision"]["verdict"], string>>> = {
  would_deny: "would deny this command",
  would_ask: "would ask a person before this command",
  would_isolate: "would hold this command's changes",
};
