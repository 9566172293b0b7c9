/** The hint of a reply about held changes. Pure. */
import type { DecisionRule, FsDiff } from "../../schemas/generated/types.ts";
import { countChanges } from "../../world/backend.ts";
import type { Effective } from "../model/effective.ts";
import { quoted } from "../model/refusal.ts";

/** Result of `changes.auto_apply` for a command. */
export type AutoApplied = {
  readonly applied: number;
  /** Whether some changes are still held. */
  readonly held: boolean;
  /** A sentence for the reply: the applied changes, or the reason for applying none. */
  readonly words: string;
};

/**
 * Builds the hint; undefined when no change is held or applied. `canChange`: whether the backend can show and apply held changes.
 * `forOperator`: paths that no agent may apply. `rule`: why the command ran isolated.
 */
export function heldHint(
  span: string,
  { policies }: Effective,
  changes: FsDiff,
  auto: AutoApplied | undefined,
  canChange: boolean,
  forOperator: readonly string[] = [],
  rule: DecisionRule | null = null,
): string | undefined {
  const applied = auto === undefined ? [] : [`${auto.words}.`];
  if (!changes.held) return applied.length === 0 ? undefined : applied.join(" ");
  const { words: counts } = countChanges(changes);
  if (!canChange)
    return `Changes are held, not yet in the project: ${counts}. No later command sees them, and this backend can neither show nor apply them. Run the command without isolation to keep its changes`;
  // The counts include the applied changes.
  const what =
    auto !== undefined && auto.applied > 0
      ? "The other changes are held, not yet in the project"
      : `Changes are held, not yet in the project: ${counts}`;
  const byAgents = policies.every(({ document }) => document.changes?.apply === "agent");
  const [apply, discard] = ["apply", "discard"].map(
    (verb) => `'substrate ${verb} ${span}'${byAgents ? ` (POST /v1/${verb}/${span})` : ""}`,
  );
  const who = byAgents
    ? `${apply} applies them to the project, ${discard} discards them`
    : `the operator applies them to the project with ${apply}, or discards them with ${discard}`;
  return [
    ...applied,
    `${what}; no later command sees them.`,
    `'substrate diff ${span}' (GET /v1/diff/${span}) shows them; ${who}.`,
    ...(forOperator.length === 0
      ? []
      : [
          `${someOf(forOperator)}: tools run such files later ('autorun'), so only the operator can apply them.`,
        ]),
    // After a person's approval the rule is the one that asked.
    ...(rule === null || rule.list === "commands.ask"
      ? []
      : [`The command ran isolated ${whyIsolated(rule)}.`]),
  ].join(" ");
}

/** An opaque command's fragment is the whole command; its reason says which word is unknown. */
function whyIsolated({ list, source, pattern, fragment, reason }: DecisionRule): string {
  const why = list === "commands.opaque" ? reason : undefined;
  return `by ${list} (${source}): ${why ?? `${quoted(fragment)} matches '${pattern}'`}`;
}

export function someOf(paths: readonly string[]): string {
  const more = paths.length - 3;
  const some = paths.slice(0, 3).map((path) => `'${path}'`);
  return `${some.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
