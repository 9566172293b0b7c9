/** What was done with a span's held changes so far, as its spans say. */
import type { Span } from "../../schemas/generated/types.ts";
import type { Broker } from "../broker.ts";
import type { SpanRecord } from "../spans/trace.ts";

const DONE = { apply: "applied", discard: "discarded", undo: "taken back" } as const;

/** For a person who asks for what is no longer there. */
export function pastWords(broker: Broker, span: SpanRecord): string {
  const events = broker.trace
    .childrenOf(span.span_id)
    .filter(({ held_changes: event, outcome }) => event !== undefined && outcome === "ended")
    .sort((one, other) => one.seq - other.seq);
  if (events.length === 0) return span.fs_diff?.held === true ? "they have expired" : "it changed nothing";
  return events.slice(-3).flatMap(eventWords).join(", then ");
}

/** Whether a person applied any of them; one that was cut off may have been finished since. */
export function wasAppliedByOperator(broker: Broker, span: string): boolean {
  const untouched: readonly unknown[] = ["refused", "failed"];
  return broker.trace
    .childrenOf(span)
    .some(
      ({ held_changes: event, outcome }) =>
        event?.action === "apply" && event.by === "operator" && !untouched.includes(outcome),
    );
}

function eventWords({ held_changes: event, ts, span_id: id }: Span): readonly string[] {
  return event === undefined ? [] : [`${event.done ?? 0} ${DONE[event.action]} at ${ts} (${id})`];
}
