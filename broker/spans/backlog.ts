/** Indexes what is older than what the broker needed to start: in the background, newest file first. */
import { setImmediate as turn } from "node:timers/promises";
import type { Backlog, OnProgress } from "./catch-up.ts";
import { readBatches } from "./lines.ts";
import { parsed } from "./read-span.ts";
import type { SpanEntry } from "./span-entry.ts";
import type { Placed, SpanIndex } from "./span-index.ts";
import type { TraceLog } from "./trace-log.ts";
import { partPath } from "./trace-parts.ts";

/** Lines of one turn of the event loop: a command waits for no more than that. */
const LINES_A_TURN = 50;

/** Spans whose rows wait for the database at once; what is committed together costs one journal commit. */
const SPANS_WAITING = 2000;

/**
 * Settles when all is indexed, or as soon as `signal` aborts: what is left is in the database, and the next broker goes
 * on. A file that is done twice is the same as one that is done once.
 */
export async function indexBacklog(
  log: TraceLog,
  index: SpanIndex,
  backlog: Backlog,
  onProgress: OnProgress,
  signal: AbortSignal,
): Promise<void> {
  const sizes = new Map(log.parts().map(({ first, size }) => [first, size]));
  const all = backlog.reduce((sum, first) => sum + (sizes.get(first) ?? 0), 0);
  const left = [...backlog];
  let done = 0;
  for (let first = left.at(-1); first !== undefined && !signal.aborted; first = left.at(-1)) {
    const size = sizes.get(first);
    if (size !== undefined) {
      await indexPart(log, index, first, (read) => onProgress(done + read, all), signal);
      done += size;
    }
    if (signal.aborted) return;
    left.pop();
    await index.state.putBacklog(left);
  }
}

async function indexPart(
  log: TraceLog,
  index: SpanIndex,
  file: number,
  onRead: (read: number) => void,
  signal: AbortSignal,
): Promise<void> {
  const added = new Map<string, SpanEntry>();
  let writes: Promise<unknown>[] = [];
  for await (const lines of readBatches(partPath(log.path, file))) {
    for (let from = 0; from < lines.length; from += LINES_A_TURN) {
      if (signal.aborted) break;
      const placed: Placed[] = lines.slice(from, from + LINES_A_TURN).flatMap(({ offset, length, bytes }) => {
        const line = parsed(bytes.toString("utf8"));
        // One that is none any more stays out of the index, ignoring: `trace verify` names it.
        return line === undefined ? [] : [{ line, extent: { file, offset, length } }];
      });
      writes.push(index.addOlder(placed, added));
      await turn();
    }
    if (signal.aborted) break;
    const last = lines.at(-1);
    if (last !== undefined) onRead(last.offset + last.length + 1);
    if (added.size < SPANS_WAITING) continue;
    await Promise.all(writes);
    writes = [];
    added.clear();
  }
  await Promise.all(writes);
}
