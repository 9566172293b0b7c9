/** Which lines of the trace have another one after or before them: a span with two lines is open between them. */
import type { SpanRecord } from "./trace.ts";

/** What a line is of its span; `either`: the second of two where there is a first, else the only one. */
export type LinePart = "opens" | "closes" | "whole" | "either";

type Line = Pick<SpanRecord, "event_type" | "outcome" | "held_changes">;

/** The first of two. */
export function isOpening(line: Line): boolean {
  return line.event_type === "command_start" || (isOfBothEnds(line) && line.outcome === null);
}

/** The second of two, where there is a first: what was refused at once has one line only. */
export function mayClose(line: Line): boolean {
  return line.event_type === "command_complete" || (isOfBothEnds(line) && line.outcome !== null);
}

export function partOf(line: Line): LinePart {
  if (isOpening(line)) return "opens";
  return mayClose(line) ? "either" : "whole";
}

/** Whose first line and last have one type, and differ by their outcome. */
function isOfBothEnds({ event_type: type, held_changes: changes }: Line): boolean {
  return type === "exec" || (type === "world" && changes !== undefined);
}

/** The type of the line that closes a span which was opened as this one. */
export function closingType({ event_type: type }: Line): SpanRecord["event_type"] {
  return type === "command_start" ? "command_complete" : type;
}
