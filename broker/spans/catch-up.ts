import type { Span } from "../../schemas/generated/types.ts";
import type { Changes, Follower } from "./follower.ts";
import type { OnFault, SpanIndex } from "./span-index.ts";
import type { Position, TraceLog } from "./trace-log.ts";
import { parsed } from "./trace-log.ts";
import { isOpening, mayClose } from "./two-lines.ts";

/** Spans indexed per database commit. */
const BATCH = 5000;

/** Reports a damaged line and leaves it out of the index, so that it stops only its own span, not the broker. */
const NO_SPAN =
  "A line of the trace is no longer a span and is not indexed: 'substrate trace verify' shows more";

export type OnProgress = (read: number, all: number) => void;

/**
 * Indexes the trace lines behind the index's watermark, or the whole trace after a lost index. A watermark missing in the trace
 * (cut or replaced) clears the index, and the old head is kept for `trace verify`. In that case followers receive no line twice
 * and forget no removed line: cutting the trace frees no key and no budget.
 */
export async function catchUp(
  log: TraceLog,
  index: SpanIndex,
  followers: readonly Follower[],
  onFault: OnFault,
  onProgress: OnProgress,
): Promise<void> {
  const { from, told, anew } = await startingPoint(log, index, onFault);
  // A new index of an empty trace needs its own mark: line numbers begin at one again, and followers must be told of those lines.
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

/** Returns the start position, whether the index begins anew, and the number of the last line known to the followers. */
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
