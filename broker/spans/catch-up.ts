import type { Span } from "../../schemas/generated/types.ts";
import { readLines } from "./lines.ts";
import type { SpanIndex } from "./span-index.ts";
import type { TraceFile } from "./trace-file.ts";

/** How many lines are indexed before the database may commit them. */
const BATCH = 5000;

/**
 * Reads what stands in the trace behind the index's watermark into the index. A watermark that the file does not
 * reach (the file was cut, or another one was put there) makes the index begin anew.
 */
export async function catchUp(file: TraceFile, index: SpanIndex): Promise<void> {
  const from = await startingPoint(file, index);
  if (from === file.size) return;
  let count = 0;
  for await (const { offset, length, text } of readLines(file.path, from)) {
    const span = JSON.parse(text) as Span;
    const extent = { offset, length };
    if (span.event_type === "command_complete" && index.find(span.span_id) !== undefined)
      index.addEnd(span.span_id, extent);
    else {
      const entry = { agent: span.agent_id, session: span.session_id, start: extent };
      index.addStart(span.span_id, entry, span.parent_span, span.seq, span.event_type !== "command_start");
    }
    count += 1;
    const head = { seq: span.seq, hash: span.hash };
    if (count % BATCH === 0) await index.flush({ size: offset + length + 1, head });
  }
  await index.flush({ size: file.size, head: file.head });
}

async function startingPoint(file: TraceFile, index: SpanIndex): Promise<number> {
  const mark = index.watermark();
  if (mark === undefined) return 0;
  if (mark.size <= file.size) return mark.size;
  await index.clear();
  return 0;
}
