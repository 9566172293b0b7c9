/** Texts for refused changes. Pure. */
import type { ApplyEnding, PathReason } from "../../world/backend.ts";
import { quoted, type Refusal, refusal } from "../model/refusal.ts";
import type { SpanRecord } from "../spans/trace.ts";
import { changePath } from "./change-path.ts";
import type { Action } from "./change-spans.ts";

/**
 * Refuses a change without effect, such as an undo with no applied change: only the engine knows which changes are applied.
 * `past`: the earlier changes.
 */
export function nothingDone({ span_id: id }: SpanRecord, action: Action, past: string | null): Refusal {
  return refusal(
    "not_found",
    `Nothing was ${VERBS[action]}: no change of span ${quoted(id)} is in the project${past === null ? "" : ` (${past})`}`,
    `'substrate diff ${id}' shows what is still held`,
  );
}

const VERBS = { apply: "applied", discard: "discarded", undo: "taken back" } as const;

export function refusalOf(
  { action, skipRefused }: { readonly action: Action; readonly skipRefused?: boolean },
  ending: Exclude<ApplyEnding, { readonly kind: "done" }>,
): Refusal {
  const nothing = `Nothing was ${VERBS[action]}`;
  if (ending.kind === "failed")
    return refusal(
      "busy",
      `${nothing}: ${ending.message}`,
      "Mend the cause (free space or permissions), then try again",
    );
  if (ending.kind === "conflict")
    return refusal(
      "apply_conflict",
      `${nothing}: ${reasonWords(ending.conflicts)}`,
      action === "undo"
        ? "Look at what changed since; name paths to undo the others"
        : "Look at the diff again; then apply the others (--skip-refused), or run the command again on the project as it is now",
      { conflicts: listed(ending.conflicts) },
    );
  return refusal(
    "apply_conflict",
    `${nothing}: ${reasonWords(ending.refusals)}`,
    action === "apply" && skipRefused !== true
      ? "Name the paths to apply, or leave these held and apply all others: --skip-refused (skip_refused: true)"
      : "Name the paths to use, without these",
    { conflicts: listed(ending.refusals) },
  );
}

export function cannotRecord(error: unknown): Refusal {
  const why = error instanceof Error ? error.message : String(error);
  return refusal(
    "busy",
    `Nothing was changed: the change cannot be recorded (${why})`,
    "Free space where SUBSTRATE_HOME lies, then try again",
  );
}

/** `isRest`: all other changes are applied. */
export function onlyOperator(
  { span_id: span }: SpanRecord,
  policy: string,
  denied: readonly PathReason[],
  isRest: boolean,
): Refusal {
  return refusal(
    "policy_denied",
    `${notApplied(isRest)}: only the operator can apply files that tools run later: ${reasonWords(denied)}`,
    `Apply the other changes by path, or all of them with skip_refused; ask the operator to check 'substrate diff ${span}' and run 'substrate apply ${span}'`,
    factsOf(policy, denied),
  );
}

/** `isRest`: all other changes are applied. */
export function notAllowed(policy: string, denied: readonly PathReason[], isRest: boolean): Refusal {
  return refusal(
    "policy_denied",
    `${notApplied(isRest)}: policy '${policy}' does not allow writing ${reasonWords(denied)}`,
    "Apply the other changes by path, or all of them with --skip-refused (skip_refused: true); or ask the operator to remove the name from the policy's list first",
    factsOf(policy, denied),
  );
}

function notApplied(isRest: boolean): string {
  return isRest ? "Some changes were not applied" : "Nothing was applied";
}

function factsOf(policy: string, denied: readonly PathReason[]): object {
  return { exit: 126, policy_id: policy, rule: null, conflicts: listed(denied) };
}

/** Bound on reasons in a reply. */
const MAX_REASONS = 1000;

/** Formats the reasons for a reply. */
export function listed(reasons: readonly PathReason[]): PathReason[] {
  return reasons.slice(0, MAX_REASONS).map(({ path, reason }) => ({ path: changePath(path), reason }));
}

/** Paths that a refusal's message names. */
const MAX_NAMED = 3;

/** Formats the reasons for the first paths, each reason once; the reply lists the others. */
function reasonWords(reasons: readonly PathReason[]): string {
  const named = new Map<string, string[]>();
  for (const { path, reason } of reasons.slice(0, MAX_NAMED))
    named.set(reason, [...(named.get(reason) ?? []), quoted(changePath(path))]);
  const some = [...named].map(([reason, paths]) => `${paths.join(", ")}: ${reason}`);
  const more = reasons.length - MAX_NAMED;
  return `${some.join("; ")}${more > 0 ? `; and ${more} more` : ""}`;
}
