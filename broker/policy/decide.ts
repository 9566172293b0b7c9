import type { ReadCommand } from "./command.ts";
import type {
  CompiledPolicy,
  Decision,
  DecisionRule,
  PlainVerdict,
  PolicyMode,
  Verdict,
  Where,
} from "./decision.ts";
import { findings, type Finding } from "./findings.ts";

const STRICTNESS: Readonly<Record<PlainVerdict, number>> = { allow: 0, isolate: 1, ask: 2, deny: 3 };
const OBSERVED: Readonly<Record<PlainVerdict, Verdict>> = {
  allow: "allow",
  isolate: "would_isolate",
  ask: "would_ask",
  deny: "would_deny",
};

/** What the policy says about a command that was read. Pure; throws nothing. */
export function decide(policy: CompiledPolicy, read: ReadCommand, where: Where): Decision {
  return asDecision(judge(policy, read, where), policy.mode);
}

/**
 * The assigned policy and the one that narrows it (a profile): the strictest verdict of the two holds, and enforce beats
 * observe. Of two equal verdicts the assigned policy's rule is named.
 */
export function decideBoth(
  assigned: CompiledPolicy,
  narrowing: CompiledPolicy | null,
  read: ReadCommand,
  where: Where,
): Decision {
  if (narrowing === null) return decide(assigned, read, where);
  const [first, second] = [judge(assigned, read, where), judge(narrowing, read, where)];
  const stricter = STRICTNESS[second.verdict] > STRICTNESS[first.verdict] ? second : first;
  const mode = assigned.mode === "enforce" || narrowing.mode === "enforce" ? "enforce" : "observe";
  return asDecision({ ...stricter, warnings: [...first.warnings, ...second.warnings] }, mode);
}

interface Judgement {
  readonly verdict: PlainVerdict;
  readonly rule: DecisionRule | null;
  readonly warnings: readonly DecisionRule[];
  readonly policyId: string;
}

function judge(policy: CompiledPolicy, read: ReadCommand, where: Where): Judgement {
  const { found, warnings, allowedBy } = findings(policy, read, where);
  const strictest = found.reduce<Finding | null>(
    (best, one) => (best === null || STRICTNESS[one.verdict] > STRICTNESS[best.verdict] ? one : best),
    null,
  );
  const { verdict, rule } = strictest ?? { verdict: "allow" as const, rule: allowedBy };
  return answered({ verdict, rule, warnings, policyId: policy.id }, policy);
}

/** Where nobody may be asked, what asks is refused. */
function answered(judgement: Judgement, policy: CompiledPolicy): Judgement {
  if (judgement.verdict !== "ask" || policy.document.approval?.interactive !== false) return judgement;
  const { rule } = judgement;
  const silent = "Nobody may be asked: approval.interactive is false";
  const reason = rule?.reason === undefined ? silent : `${rule.reason} (${silent})`;
  return { ...judgement, verdict: "deny", rule: rule === null ? null : { ...rule, reason } };
}

function asDecision(judgement: Judgement, mode: PolicyMode): Decision {
  return {
    ...judgement,
    mode,
    verdict: mode === "observe" ? OBSERVED[judgement.verdict] : judgement.verdict,
  };
}
