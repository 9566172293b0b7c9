/** The history of a span's held changes, from the spans below. */
import type { Span } from "../../schemas/generated/types.ts";
import type { SpanRecord, Trace } from "../spans/trace.ts";

/** The parts of the broker used for the history. */
export type PastNeeds = { readonly trace: Pick<Trace, "childrenOf"> };

const DONE = { apply: "applied", discard: "discarded", undo: "taken back" } as const;
const CUT_OFF = { apply: "an apply", discard: "a discard", undo: "an undo" } as const;

/** Describes why changes are no longer held. */
export function pastWords(broker: PastNeeds, span: SpanRecord): string {
  return wordsOfPast(span, broker.trace.childrenOf(span.span_id));
}

/** Describes the history from the spans below. Pure. */
export function wordsOfPast(span: Pick<SpanRecord, "fs_diff">, below: readonly Span[]): string {
  const done = wordsOfDone(below);
  if (done !== null) return done;
  // The world was lost or the broker killed, so its changes are unknown, possibly none.
  if (span.fs_diff === null) return "the changes were lost with the command's world";
  return span.fs_diff.held ? "the changes have expired" : "the command changed nothing";
}

/** Describes the completed changes; null without any. */
export function doneWords(broker: PastNeeds, { span_id: id }: SpanRecord): string | null {
  return wordsOfDone(broker.trace.childrenOf(id));
}

function wordsOfDone(below: readonly Span[]): string | null {
  const events = below
    .filter(({ held_changes: event, outcome }) => event !== undefined && isDone(outcome))
    .sort((one, other) => one.seq - other.seq);
  return events.length === 0 ? null : events.slice(-3).flatMap(eventWords).join(", then ");
}

/** Whether the change took effect. The engine has finished or undone interrupted changes since. */
function isDone(outcome: Span["outcome"]): boolean {
  return outcome === "ended" || outcome === "lost";
}

/** Whether the operator applied any of the changes; an interrupted apply may have been finished since. */
export function wasAppliedByOperator(broker: PastNeeds, span: string): boolean {
  const untouched: readonly unknown[] = ["refused", "failed"];
  return broker.trace
    .childrenOf(span)
    .some(
      ({ held_changes: event, outcome }) =>
        event?.action === "apply" && event.by === "operator" && !untouched.includes(outcome),
    );
}

function eventWords({ held_changes: event, outcome, ts, span_id: id }: Span): readonly string[] {
  if (event === undefined) return [];
  if (outcome === "lost")
    return [`${CUT_OFF[event.action]} was interrupted before ${ts} and resolved since (${id})`];
  return [`${event.done ?? 0} ${DONE[event.action]} at ${ts} (${id})`];
}

/**
 * Whether a span of an earlier broker may hold changes, or the data for undoing applied changes; `children` are the spans below.
 * Changes of a command lost with its broker are dropped, since their completeness is unknown. A span whose listing failed may
 * hold changes, and so may a span missing in this trace, after somebody began a new trace. A replay never holds changes.
 */
export function mayHold(span: Span | undefined, children: () => readonly Span[]): boolean {
  if (span === undefined || span.fs_diff?.held === true) return true;
  if (span.given?.replays !== undefined) return false;
  if (span.event_type === "command_complete" && span.outcome === "failed") return true;
  return span.overlay !== undefined && children().some((child) => child.held_changes !== undefined);
}
