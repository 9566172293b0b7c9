/** Who may apply, discard and take back, and what the policy lets nobody write: as the policies are now. */
import { type Ground, type GroundNeeds, groundOf } from "../policies/judge.ts";
import { type Refusal, refusal } from "../model/refusal.ts";
import { type SpecOfFiles, type Surroundings, worldSpec } from "../worlds/world-spec.ts";
import type { Asker } from "./change-spans.ts";
import type { FoundChanges } from "./find-held.ts";
import { type PastNeeds, wasAppliedByOperator } from "./past.ts";

/** Under which policies a call about held changes is judged: those of the agent whose command it was. */
export function groundOfChanges(broker: GroundNeeds, { agent, place }: FoundChanges): Ground | Refusal {
  return groundOf(broker, agent, place, undefined);
}

/** Why an agent may not; undefined when every policy that holds lets it. */
export function notByAgents({ effective }: Ground, span: string): Refusal | undefined {
  const strict = effective.policies.find(({ document }) => document.changes?.apply !== "agent");
  if (strict === undefined) return undefined;
  return refusal(
    "policy_denied",
    `Policy '${strict.id}' lets agents look at held changes and not apply, discard or undo them`,
    `Ask the operator to look at 'substrate diff ${span}' and to run 'substrate apply ${span}' or 'discard'; 'changes: { apply: agent }' in the policy would let you`,
    { exit: 126, policy_id: strict.id, rule: null },
  );
}

/** Why an agent may not take it back; what a person put into the project may be what keeps the agent in its bounds. */
export function notUndoneByAgents(
  broker: PastNeeds,
  { effective }: Ground,
  span: string,
): Refusal | undefined {
  if (!wasAppliedByOperator(broker, span)) return undefined;
  return refusal(
    "policy_denied",
    "The operator applied changes of this span, and only the operator takes them back",
    `Ask the operator to run 'substrate undo ${span}'`,
    { exit: 126, policy_id: effective.id, rule: null },
  );
}

/**
 * The lists that an apply is held to. As an isolated command's, not as a plain one's: there git's own files in the project are denied
 * whether they stand or not. Names that tools run later the operator alone applies.
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
