import type { Span } from "../../schemas/generated/types.ts";
import type { OnFault } from "./span-index.ts";
import type { Extent, TraceLog } from "./trace-log.ts";

/** The span whose line the index says is there. Undefined, and told, when there is another, or what is no span: the file was changed. */
export function readSpan(log: TraceLog, id: string, extent: Extent, onFault: OnFault): Span | undefined {
  const line = log.read(extent);
  const span = line === undefined ? undefined : parsed(line);
  if (span?.span_id === id) return span;
  const where = `byte ${extent.offset} of the file that begins with line ${extent.file}`;
  const what = line === undefined ? "gone" : "not the one that was written";
  onFault(`A line of the trace is ${what}; 'substrate trace verify' says more`, new Error(where));
  return undefined;
}

/** A line's span; undefined when the line is none: it was changed since, and `trace verify` names it. */
export function parsed(line: string): Span | undefined {
  try {
    const span = JSON.parse(line) as Partial<Span> | null;
    return typeof span?.span_id === "string" && Number.isSafeInteger(span.seq) ? (span as Span) : undefined;
  } catch {
    return undefined;
  }
}
