/** What is said where nothing was applied, discarded or taken back. Pure. */
import type { ApplyEnding } from "../../world/backend.ts";
import { quoted, type Refusal, refusal } from "../model/refusal.ts";
import type { SpanRecord } from "../spans/trace.ts";
import type { Action } from "./change-spans.ts";
import { listed, reasonWords } from "./reasons.ts";

/** An undo with nothing to take back: what is applied only the engine knows. `past`: what was done so far. */
export function nothingDone({ span_id: id }: SpanRecord, action: Action, past: string | null): Refusal {
  return refusal(
    "not_found",
    `Nothing was ${VERBS[action]}: no change of span ${quoted(id)} is in the project${past === null ? "" : ` (${past})`}`,
    `'substrate diff ${id}' shows what is held still`,
  );
}

const VERBS = { apply: "applied", discard: "discarded", undo: "taken back" } as const;

export function refusalOf(action: Action, ending: Exclude<ApplyEnding, { readonly kind: "done" }>): Refusal {
  const nothing = `Nothing was ${VERBS[action]}`;
  if (ending.kind === "failed")
    return refusal(
      "busy",
      `${nothing}, and all is as it was: ${ending.message}`,
      "Mend that (free space, or permissions), then try again",
    );
  if (ending.kind === "conflict")
    return refusal(
      "apply_conflict",
      `${nothing}: ${reasonWords(ending.conflicts)}`,
      action === "undo"
        ? "Look at what changed since; name paths to take back the others"
        : "Look at the diff again; apply the other paths by name, or run the command again on the project as it is now",
      { conflicts: listed(ending.conflicts) },
    );
  return refusal(
    "apply_conflict",
    `${nothing}: ${reasonWords(ending.refusals)}`,
    "Name the paths of the diff that are meant, without these",
    { conflicts: listed(ending.refusals) },
  );
}

export function cannotRecord(error: unknown): Refusal {
  const why = error instanceof Error ? error.message : String(error);
  return refusal(
    "busy",
    `Nothing was changed: it cannot be recorded (${why})`,
    "Free space where SUBSTRATE_HOME lies, then try again",
  );
}
