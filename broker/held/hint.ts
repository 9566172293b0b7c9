/** What a reply says about changes that are held. Pure. */
import type { FsDiff } from "../../schemas/generated/types.ts";
import type { Effective } from "../policies.ts";
import type { AutoApplied } from "./auto-apply.ts";

/** Undefined: nothing is held and nothing was applied. `canChange`: the backend can show and apply what is held. */
export function heldHint(
  span: string,
  { policies }: Effective,
  changes: FsDiff,
  auto: AutoApplied | undefined,
  canChange: boolean,
): string | undefined {
  const applied = auto === undefined ? [] : [`${auto.words}.`];
  if (!changes.held) return applied.length === 0 ? undefined : applied.join(" ");
  if (!canChange)
    return "Changes are held: they are not in the project, no later command sees them, and this backend can neither show nor apply them. Run the command without isolation if they are wanted";
  const byAgents = policies.every(({ document }) => document.changes?.apply === "agent");
  const who = byAgents
    ? `POST /v1/apply/${span} puts them into the project, /v1/discard/${span} drops them`
    : `the operator puts them into the project with 'substrate apply ${span}', or drops them with 'substrate discard ${span}'`;
  return [
    ...applied,
    `${auto !== undefined && auto.applied > 0 ? "The other changes" : "Changes"} are held: they are not in the project, and no later command sees them.`,
    `'substrate diff ${span}' (GET /v1/diff/${span}) shows them; ${who}.`,
  ].join(" ");
}
