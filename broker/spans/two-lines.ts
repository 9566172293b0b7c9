/** Spans with two lines, which are open in between: classifies lines as opening or closing. */
import type { SpanRecord } from "./trace.ts";

/** A line's role in its span; `either`: closes an open span, otherwise the only line. */
export type LinePart = "opens" | "closes" | "whole" | "either";

type Line = Pick<SpanRecord, "event_type" | "outcome" | "held_changes">;

/** Whether the line is the first of two. */
export function isOpening(line: Line): boolean {
  return line.event_type === "command_start" || (isOfBothEnds(line) && line.outcome === null);
}

/** Whether the line is the second of two, if there is a first; a call refused at once has a single line. */
export function mayClose(line: Line): boolean {
  return line.event_type === "command_complete" || (isOfBothEnds(line) && line.outcome !== null);
}

export function partOf(line: Line): LinePart {
  if (isOpening(line)) return "opens";
  return mayClose(line) ? "either" : "whole";
}

/** Whether the span's first and last lines have the same type and differ by outcome. */
function isOfBothEnds({ event_type: type, held_changes: changes }: Line): boolean {
  return type === "exec" || (type === "world" && changes !== undefined);
}

/** The type of the closing line for a span opened by this line. */
export function closingType({ event_type: type }: Line): SpanRecord["event_type"] {
  return type === "command_start" ? "command_complete" : type;
}
