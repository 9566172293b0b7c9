import type { Span } from "../../schemas/generated/types.ts";
import type { Changes, Follower } from "./follower.ts";
import type { OnFault, SpanIndex } from "./span-index.ts";
import type { Position, TraceLog } from "./trace-log.ts";
import { parsed } from "./trace-log.ts";
import { isOpening, mayClose } from "./two-lines.ts";

/** How many spans are indexed before the database commits them. */
const BATCH = 5000;

/** Whoever damaged a line takes that one from the index, and not the broker from everybody. */
const NO_SPAN =
  "A line of the trace is no span any more, and stays out of the index: 'substrate trace verify' says more";

export type OnProgress = (read: number, all: number) => void;

/**
 * Reads what stands in the trace behind the index's watermark into the index; all of it when the index is lost. A watermark that
 * the trace does not hold (it was cut, or another one was put there) makes the index begin anew, and its head is kept for
 * `trace verify`. Followers are told no line twice then, and forget none that is gone: a cut trace frees no key and no budget.
 */
export async function catchUp(
  log: TraceLog,
  index: SpanIndex,
  followers: readonly Follower[],
  onFault: OnFault,
  onProgress: OnProgress,
): Promise<void> {
  const { from, told, anew } = await startingPoint(log, index, onFault);
  // An index that begins anew needs its mark even in an empty trace: the next lines count from one again, and are told.
  if (!anew && from.file === log.end.file && from.offset === log.end.offset) return;
  const all = log.bytesFrom(from);
  let done = 0;
  for await (const { file, lines } of log.lines(from)) {
    for (const { offset, length, bytes } of lines) {
      done += length + 1;
      const span = parsed(bytes.toString("utf8"));
      if (span === undefined) {
        onFault(NO_SPAN, new Error(`Byte ${offset} of the file that begins with line ${file}`));
        continue;
      }
      addLine(index, span, { file, offset, length });
      if (span.seq > told) for (const follower of followers) follower.note(span);
      if (index.waiting < BATCH) continue;
      const mark = { end: { file, offset: offset + length + 1 }, head: { seq: span.seq, hash: span.hash } };
      await index.flush(mark, changesOf(followers), BATCH);
      onProgress(done, all);
    }
  }
  if (await index.flush({ end: log.end, head: log.head }, changesOf(followers), BATCH))
    await index.state.forgetTold();
}

function addLine(index: SpanIndex, span: Span, extent: Parameters<SpanIndex["addEnd"]>[1]): void {
  if (mayClose(span) && index.find(span.span_id) !== undefined) index.addEnd(span, extent);
  else index.addStart(span, span.seq, extent, !isOpening(span));
}

function changesOf(followers: readonly Follower[]): readonly Changes[] {
  return followers.map((follower) => follower.changes());
}

/** Where to begin, whether that is with an empty index, and the last line that the followers know already. */
async function startingPoint(
  log: TraceLog,
  index: SpanIndex,
  onFault: OnFault,
): Promise<{ readonly from: Position; readonly told: number; readonly anew: boolean }> {
  const { watermark: mark, head: known } = index.state;
  if (mark !== undefined && log.endsWith(mark.head, mark.end))
    return { from: mark.end, told: Math.max(mark.head.seq, index.state.told), anew: false };
  if (mark !== undefined) {
    const lost = mark.head.hash ?? "none";
    const why = new Error(`Lost head ${lost}`);
    onFault("The trace is not the one that was indexed: it was cut, changed or replaced", why);
    if (mark.head.hash !== null) await index.state.addLostHead(mark.head.hash);
  }
  const told = Math.max(known?.seq ?? Number.NEGATIVE_INFINITY, index.state.told);
  await index.state.putTold(told);
  await index.clear();
  const [first = 1] = log.files();
  return { from: { file: first, offset: 0 }, told, anew: true };
}
