import type { Span } from "../../schemas/generated/types.ts";
import type { Changes, Follower } from "./follower.ts";
import type { OnFault, SpanIndex } from "./span-index.ts";
import type { Position, TraceLog } from "./trace-log.ts";
import { lastLineOf } from "./file-ends.ts";
import { parsed } from "./read-span.ts";
import { isOpening, mayClose } from "./two-lines.ts";

/** How many spans are indexed before the database may commit them. */
const BATCH = 5000;

/** Of a trace whose index is lost so much is read before the broker starts, whatever its age. */
const FRONT_BYTES = 64 * 1024 * 1024;

/** Commands of an earlier broker that are still open began within a day of its last line (CONTRACT §3). */
const FRONT_MS = 25 * 60 * 60 * 1000;

/** Whoever damaged a line takes that one from the index, and not the broker from everybody. */
const NO_SPAN =
  "A line of the trace is no span any more, and stays out of the index: 'substrate trace verify' says more";

export type OnProgress = (read: number, all: number) => void;

/** Files that are not indexed yet, oldest first. */
export type Backlog = readonly number[];

/**
 * Reads what stands in the trace behind the index's watermark into the index. A watermark that the trace does not
 * hold (it was cut, or another one was put there) makes the index begin anew, and its head is kept for `trace verify`.
 * Followers are told no line twice then, and forget none that is gone: a cut trace frees no key and no budget.
 *
 * Of an index that is lost only what followers and open commands need is made again here; the rest is the backlog.
 */
export async function catchUp(
  log: TraceLog,
  index: SpanIndex,
  followers: readonly Follower[],
  onFault: OnFault,
  onProgress: OnProgress,
): Promise<Backlog> {
  const { from, told, backlog } = await startingPoint(log, index, followers, onFault);
  if (from.file === log.end.file && from.offset === log.end.offset) return backlog;
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
      await index.flush(mark, changesOf(followers));
      onProgress(done, all);
    }
  }
  await index.flush({ end: log.end, head: log.head }, changesOf(followers));
  return backlog;
}

function addLine(index: SpanIndex, span: Span, extent: Parameters<SpanIndex["addEnd"]>[1]): void {
  if (mayClose(span) && index.find(span.span_id) !== undefined) index.addEnd(span, extent);
  else index.addStart(span, span.seq, extent, !isOpening(span));
}

function changesOf(followers: readonly Follower[]): readonly Changes[] {
  return followers.map((follower) => follower.changes());
}

/** Where to begin, the last line that the followers know already, and what is left for later. */
async function startingPoint(
  log: TraceLog,
  index: SpanIndex,
  followers: readonly Follower[],
  onFault: OnFault,
): Promise<{ readonly from: Position; readonly told: number; readonly backlog: Backlog }> {
  const { watermark: mark, head: known, backlog } = index.state;
  if (mark !== undefined && log.endsWith(mark.head, mark.end))
    return { from: mark.end, told: mark.head.seq, backlog };
  const told = known?.seq ?? Number.NEGATIVE_INFINITY;
  if (mark !== undefined) {
    const lost = mark.head.hash ?? "none";
    const why = new Error(`Lost head ${lost}`);
    onFault("The trace is not the one that was indexed: it was cut, changed or replaced", why);
    if (mark.head.hash !== null) await index.state.addLostHead(mark.head.hash);
  }
  await index.clear();
  // Those who know all lines up to the lost head need none of them again.
  const needed = known === undefined ? Math.min(...followers.map((follower) => follower.needs())) : Infinity;
  const older = olderFiles(log, needed);
  await index.state.putBacklog(older);
  const first = log.files().find((file) => !older.includes(file)) ?? 1;
  return { from: { file: first, offset: 0 }, told, backlog: older };
}

/** The files, oldest first, in which neither a follower nor a command that may be open needs a line. */
function olderFiles(log: TraceLog, needed: number): Backlog {
  const parts = log.parts();
  const newest = parts.at(-1);
  if (newest === undefined) return [];
  const end = log.size > 0 ? Date.now() : lastTime(newest.path);
  const from = Math.min(needed, end - FRONT_MS);
  let behind = parts.reduce((sum, { size }) => sum + size, log.size);
  const older: number[] = [];
  for (const { first, path, size } of parts) {
    behind -= size;
    if (behind < FRONT_BYTES || lastTime(path) >= from) break;
    older.push(first);
  }
  return older;
}

/** When a file's last line was written; a line that is no span counts as one of now. */
function lastTime(path: string): number {
  try {
    return Date.parse((JSON.parse(lastLineOf(path) ?? "") as Span).ts);
  } catch {
    return Date.now();
  }
}
