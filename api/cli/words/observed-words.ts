/** What a policy that only observes would have stopped, for the person who ran the command. */
import type { ExecuteReply } from "../../../schemas/generated/types.ts";

/** One sentence about the command itself; undefined when an enforcing policy would have run it the same way. */
export function observedWords({ decision, policy_id: policy }: ExecuteReply): string | undefined {
  const then = THEN[decision.verdict];
  if (then === undefined) return undefined;
  const { rule } = decision;
  const reason = rule?.reason === undefined ? "" : `: ${rule.reason}`;
  const why =
    rule === null
      ? ""
      : `: '${rule.fragment}' matches '${rule.pattern}' in ${rule.list} (${rule.source})${reason}`;
  return `policy '${policy}' only observes; with 'mode: enforce' it ${then}${why}`;
}

const THEN: Readonly<Partial<Record<ExecuteReply["decision"]["verdict"], string>>> = {
  would_deny: "would deny this command",
  would_ask: "would ask a person before this command",
  would_isolate: "would hold what this command changes",
};
