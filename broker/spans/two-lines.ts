/** Which lines of the trace have another one after or before them: a span with two lines is open between them. */
import type { SpanRecord } from "./trace.ts";

type Line = Pick<SpanRecord, "event_type" | "outcome" | "held_changes">;

/** The first of two. */
export function isOpening({ event_type: type, outcome, held_changes: changes }: Line): boolean {
  return type === "command_start" || (type === "world" && changes !== undefined && outcome === null);
}

/** The second of two, where there is a first: what was refused at once has one line only. */
export function mayClose({ event_type: type, outcome, held_changes: changes }: Line): boolean {
  return type === "command_complete" || (type === "world" && changes !== undefined && outcome !== null);
}

/** The type of the line that closes a span which was opened as this one. */
export function closingType({ event_type: type }: Line): SpanRecord["event_type"] {
  return type === "command_start" ? "command_complete" : type;
}
