/** Rotates the trace and drops old files. Never on the path of a command. */
import { setImmediate as turn } from "node:timers/promises";
import type { Span, TraceDropped } from "../../schemas/generated/types.ts";
import { eventSpan } from "./event-span.ts";
import { isDropped, toDrop, type InUse, type TraceLimits } from "./retention.ts";
import type { OnFault, SpanIndex } from "./span-index.ts";
import type { Extent, TraceLog } from "./trace-log.ts";
import type { SpanRecord } from "./trace.ts";

/** Spans removed from the index per turn of the event loop. */
const SPANS_A_TURN = 100;

export type UpkeepParts = {
  readonly log: TraceLog;
  readonly index: SpanIndex;
  readonly limits: () => TraceLimits;
  readonly inUse: () => InUse;
  /** Writes a line and resolves once it is indexed. */
  readonly record: (line: SpanRecord) => Promise<boolean>;
  readonly onFault: OnFault;
};

export class Upkeep {
  readonly #parts: UpkeepParts;
  #running: Promise<void> | undefined;
  #ending = false;

  constructor(parts: UpkeepParts) {
    this.#parts = parts;
  }

  /** Begins a new file when the live file is large. A failure is reported and retried with the next lines. */
  rotateIfLarge(): void {
    const { log, limits, onFault } = this.#parts;
    if (log.size < limits().fileBytes) return;
    try {
      log.rotate();
    } catch (error) {
      return onFault("Cannot rotate the trace; the same file grows beyond its limit", error);
    }
    this.retain();
  }

  /** Drops files beyond the limits, in the background. */
  retain(): void {
    if (this.#ending) return;
    this.#running ??= this.#retain()
      .catch((error: unknown) => this.#parts.onFault("Cannot drop old files of the trace", error))
      .finally(() => {
        this.#running = undefined;
      });
  }

  /** Resolves once all work has stopped. */
  async end(): Promise<void> {
    this.#ending = true;
    await this.#running;
  }

  /** Finishes a drop recorded by an earlier broker but not completed. */
  async finish(): Promise<void> {
    const dropped = this.#parts.index.state.dropped;
    if (dropped !== undefined) await this.#remove(dropped);
  }

  /**
   * Order: first the durable line naming the files to drop, then the index, then the files, oldest first. After a kill at any
   * moment, the remaining files form a chain that begins at its old beginning or at the position named by the line.
   */
  async #retain(): Promise<void> {
    const { log, index, limits, inUse, record, onFault } = this.#parts;
    const parts = log.parts();
    const now = Date.now();
    const dropped = toDrop(parts, log.size, limits(), inUse(), now);
    if (dropped === undefined) return this.#sayIfLarge();
    const line = eventSpan({ event_type: "world", outcome: "ended", message: sentence(dropped), dropped });
    if (!(await record(line)))
      return onFault("Old files of the trace are kept until the index can be written", undefined);
    await log.settle();
    await index.state.putDropped(dropped);
    await this.#remove(dropped);
    this.#sayIfLarge();
  }

  async #remove(dropped: TraceDropped): Promise<void> {
    const { log, index } = this.#parts;
    const parts = log.parts().filter((part) => isDropped(part, dropped));
    if (parts.length === 0) return;
    const gone = new Set(parts.map(({ first }) => first));
    const stays = (extent: Extent): number | undefined =>
      gone.has(extent.file) ? undefined : seqAt(log, extent);
    const newest = Math.max(
      ...dropped.files.filter(({ first_seq: first }) => gone.has(first)).map((file) => file.last_seq),
    );
    while ((await index.removeUpTo(newest, SPANS_A_TURN, stays)) > 0) await turn();
    for (const { first } of parts) log.drop(first);
  }

  #sayIfLarge(): void {
    const { log, limits, onFault } = this.#parts;
    const parts = log.parts();
    const { maxBytes } = limits();
    const all = parts.reduce((sum, { size }) => sum + size, log.size);
    if (parts.length === 0 || all <= maxBytes) return;
    const why = new Error(`The trace has ${all} bytes, its limit is ${maxBytes}`);
    onFault("The trace exceeds its limit, but its oldest file is still in use", why);
  }
}

function seqAt(log: TraceLog, extent: Extent): number | undefined {
  const line = log.read(extent);
  return line === undefined ? undefined : (JSON.parse(line) as Span).seq;
}

function sentence({
  lines,
  first_seq: first,
  last_seq: last,
  last_hash: hash,
  reason,
}: TraceDropped): string {
  const why =
    reason === "age" ? "they are older than trace.max_age_days" : "the trace is larger than trace.max_mib";
  return `Dropped ${lines} lines, ${first} to ${last}, the last with ${hash}: ${why}`;
}
