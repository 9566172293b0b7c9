import type { Span } from "../../schemas/generated/types.ts";
import type { Changes, Follower } from "./follower.ts";
import { readLines } from "./lines.ts";
import type { OnFault, SpanIndex } from "./span-index.ts";
import type { TraceFile } from "./trace-file.ts";

/** How many lines are indexed before the database may commit them. */
const BATCH = 5000;

/**
 * Reads what stands in the trace behind the index's watermark into the index. A watermark that the file does not
 * hold (it was cut, or another one was put there) makes the index begin anew, and its head is kept for `trace verify`.
 * Followers are told no line twice then, and forget none that is gone: a cut trace frees no key and no budget.
 */
export async function catchUp(
  file: TraceFile,
  index: SpanIndex,
  followers: readonly Follower[],
  onFault: OnFault,
): Promise<void> {
  const { from, told } = await startingPoint(file, index, onFault);
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
    if (span.seq > told) for (const follower of followers) follower.note(span);
    count += 1;
    const head = { seq: span.seq, hash: span.hash };
    if (count % BATCH === 0) await index.flush({ size: offset + length + 1, head }, changesOf(followers));
  }
  await index.flush({ size: file.size, head: file.head }, changesOf(followers));
}

function changesOf(followers: readonly Follower[]): readonly Changes[] {
  return followers.map((follower) => follower.changes());
}

/** Where to begin, and the last line that the followers know already. */
async function startingPoint(
  file: TraceFile,
  index: SpanIndex,
  onFault: OnFault,
): Promise<{ readonly from: number; readonly told: number }> {
  const mark = index.watermark();
  if (mark === undefined) return { from: 0, told: Number.NEGATIVE_INFINITY };
  const told = mark.head.seq;
  if (file.endsWith(mark.head, mark.size)) return { from: mark.size, told };
  const lost = mark.head.hash ?? "none";
  onFault(
    "The trace is not the one that was indexed: it was cut, changed or replaced",
    new Error(`Lost head ${lost}`),
  );
  await index.clear();
  if (mark.head.hash !== null) await index.addLostHead(mark.head.hash);
  return { from: 0, told };
}
