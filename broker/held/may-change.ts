/** Who may apply, discard and undo held changes, and which writes are denied to all, by the current policies. */
import { type Ground, type GroundNeeds, groundOf } from "../policies/judge.ts";
import { type Refusal, refusal } from "../model/refusal.ts";
import { type SpecOfFiles, type Surroundings, worldSpec } from "../worlds/world-spec.ts";
import type { Asker } from "./change-spans.ts";
import type { FoundChanges } from "./find-held.ts";
import { type PastNeeds, wasAppliedByOperator } from "./past.ts";

/** Finds the policies for held changes: those of the agent that ran the command. */
export function groundOfChanges(broker: GroundNeeds, { agent, place }: FoundChanges): Ground | Refusal {
  return groundOf(broker, agent, place, undefined);
}

/** Refuses an agent unless every policy in force permits changes by agents. */
export function notByAgents({ effective }: Ground, span: string): Refusal | undefined {
  const strict = effective.policies.find(({ document }) => document.changes?.apply !== "agent");
  if (strict === undefined) return undefined;
  return refusal(
    "policy_denied",
    `Policy '${strict.id}' lets agents see held changes, but not apply, discard or undo them`,
    `Ask the operator to check 'substrate diff ${span}' and run 'substrate apply ${span}' or 'discard'; 'changes: { apply: agent }' in the policy would let you do it`,
    { exit: 126, policy_id: strict.id, rule: null },
  );
}

/** Refuses an agent's undo of an operator's apply: the applied files may be what restricts the agent. */
export function notUndoneByAgents(
  broker: PastNeeds,
  { effective }: Ground,
  span: string,
): Refusal | undefined {
  if (!wasAppliedByOperator(broker, span)) return undefined;
  return refusal(
    "policy_denied",
    "The operator applied changes of this span, so only the operator can undo them",
    `Ask the operator to run 'substrate undo ${span}'`,
    { exit: 126, policy_id: effective.id, rule: null },
  );
}

/**
 * Returns the lists that bind an apply: those of an isolated command, which deny the project's git files whether existing or
 * missing, unlike those of a plain command. Only the operator applies autorun files.
 */
export function specOfChanges(
  { around }: { readonly around: Surroundings },
  { effective, site }: Ground,
  by: Asker,
): SpecOfFiles {
  const { policies } = effective;
  const heldBy = by === "operator" ? policies.map(({ id }) => id) : [];
  return worldSpec(policies, site, { kind: "overlay", layers: "" }, around, heldBy);
}
