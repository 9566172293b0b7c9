/** What was done with a span's held changes so far, as its spans say. */
import type { Span } from "../../schemas/generated/types.ts";
import type { SpanRecord, Trace } from "../spans/trace.ts";

/** What telling of the past needs of the broker. */
export type PastNeeds = { readonly trace: Pick<Trace, "childrenOf"> };

const DONE = { apply: "applied", discard: "discarded", undo: "taken back" } as const;
const CUT_OFF = { apply: "an apply", discard: "a discard", undo: "an undo" } as const;

/** For a person who asks for what is no longer there. */
export function pastWords(broker: PastNeeds, span: SpanRecord): string {
  return wordsOfPast(span, broker.trace.childrenOf(span.span_id));
}

/** The same of the spans below it. Pure. */
export function wordsOfPast(span: Pick<SpanRecord, "fs_diff">, below: readonly Span[]): string {
  const done = wordsOfDone(below);
  if (done !== null) return done;
  // Its world was lost, or its broker killed: that it changed nothing is more than anybody knows.
  if (span.fs_diff === null) return "what its command changed was lost with its world";
  return span.fs_diff.held ? "they have expired" : "it changed nothing";
}

/** Null: nothing was done with them. */
export function doneWords(broker: PastNeeds, { span_id: id }: SpanRecord): string | null {
  return wordsOfDone(broker.trace.childrenOf(id));
}

function wordsOfDone(below: readonly Span[]): string | null {
  const events = below
    .filter(({ held_changes: event, outcome }) => event !== undefined && isDone(outcome))
    .sort((one, other) => one.seq - other.seq);
  return events.length === 0 ? null : events.slice(-3).flatMap(eventWords).join(", then ");
}

/** What was cut off may be done all the same: it was finished or taken back since, by the engine. */
function isDone(outcome: Span["outcome"]): boolean {
  return outcome === "ended" || outcome === "lost";
}

/** Whether a person applied any of them; one that was cut off may have been finished since. */
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
    return [`${CUT_OFF[event.action]} was cut off before ${ts} and settled since (${id})`];
  return [`${event.done ?? 0} ${DONE[event.action]} at ${ts} (${id})`];
}

/**
 * Whether a span that an earlier broker wrote may hold changes, or what is needed to take back those that were applied;
 * `children` are the spans below it. A command that was lost with its broker is dropped: how far it came nobody knows. One
 * whose listing failed may hold some, and so may one that this trace does not know, because somebody began a new trace.
 * A replay never holds any.
 */
export function mayHold(span: Span | undefined, children: () => readonly Span[]): boolean {
  if (span === undefined || span.fs_diff?.held === true) return true;
  if (span.given?.replays !== undefined) return false;
  if (span.event_type === "command_complete" && span.outcome === "failed") return true;
  return span.overlay !== undefined && children().some((child) => child.held_changes !== undefined);
}
