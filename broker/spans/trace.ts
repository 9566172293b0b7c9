/**
 * The record of what was asked and what happened: the trace's files (the truth) and their index.
 * A span is started before its command has any effect and closed when it has ended; a broker that died between
 * the two finds the span again when it starts and closes it as `lost`.
 */
import type { Span } from "../../schemas/generated/types.ts";
import { indexBacklog } from "./backlog.ts";
import { type Backlog, catchUp } from "./catch-up.ts";
import type { Head } from "./chain.ts";
import type { Follower } from "./follower.ts";
import { LateLines } from "./late-lines.ts";
import { readSpan } from "./read-span.ts";
import { type InUse, traceLimits } from "./retention.ts";
import { Running } from "./running.ts";
import { type OnFault, SpanIndex } from "./span-index.ts";
import type { SpanPage, SpanQuery } from "./span-order.ts";
import { type Extent, TraceLog } from "./trace-log.ts";
import { failedEnd, lostEnd } from "./unseen-end.ts";
import type { TraceOptions } from "./trace-options.ts";
import { isOpening, type LinePart, partOf } from "./two-lines.ts";
import { Upkeep } from "./upkeep.ts";

/** A span as its owner hands it in: what the chain adds is missing. */
export type SpanRecord = Omit<Span, "seq" | "prev" | "hash">;

/** How far the database's copy of the chain's head may be behind the file, in milliseconds. */
const MARK_DELAY_MS = 500;

/** How often old files are looked for when nothing else makes the trace look. */
const RETAIN_MS = 60 * 60 * 1000;

export class Trace {
  readonly #log: TraceLog;
  readonly #index: SpanIndex;
  readonly #sync: boolean;
  readonly #followers: readonly Follower[];
  readonly onFault: OnFault;
  readonly #options: TraceOptions;
  readonly #upkeep: Upkeep;
  readonly #late: LateLines;
  readonly #running = new Running();
  readonly #ending = new AbortController();
  #indexing = Promise.resolve();
  #progress: { readonly read: number; readonly all: number } | null = null;
  #marking: NodeJS.Timeout | undefined;
  #retaining: NodeJS.Timeout | undefined;

  private constructor(
    log: TraceLog,
    index: SpanIndex,
    sync: boolean,
    onFault: OnFault,
    followers: readonly Follower[],
    options: TraceOptions,
  ) {
    this.#log = log;
    this.#index = index;
    this.#sync = sync;
    this.#followers = followers;
    this.onFault = onFault;
    this.#options = options;
    this.#late = new LateLines((line) => this.#write([line], "closes"), onFault);
    this.#upkeep = new Upkeep({
      log,
      index,
      limits: options.limits ?? (() => traceLimits({})),
      inUse: () => this.#inUse(),
      record: (line) => {
        this.event(line);
        return this.#mark();
      },
      onFault,
    });
  }

  /**
   * Opens the trace at `path` with its index. Reads what the index lacks and closes what an earlier broker left
   * open. `sync` makes every start durable against a power cut. `followers` are told every line.
   */
  static async open(
    path: string,
    database: string,
    sync: boolean,
    onFault: OnFault,
    followers: readonly Follower[] = [],
    options: TraceOptions = {},
  ): Promise<Trace> {
    const log = new TraceLog(path);
    const index = new SpanIndex(database, { onFault });
    for (const follower of followers) follower.open(index.root);
    const backlog = await catchUp(log, index, followers, onFault, options.onProgress ?? (() => {}));
    const trace = new Trace(log, index, sync, onFault, followers, options);
    trace.#closeLost();
    await trace.#mark();
    await trace.#upkeep.finish();
    trace.#indexing = trace.#indexOlder(backlog);
    trace.#retaining = setInterval(() => trace.#upkeep.retain(), RETAIN_MS).unref();
    return trace;
  }

  /** Other stores of the broker share it. */
  get database(): SpanIndex["root"] {
    return this.#index.root;
  }

  get head(): Head {
    return this.#log.head;
  }

  /** How far the index is made again, in bytes: older spans are not found until then. Null when it is whole. */
  get indexing(): { readonly read: number; readonly all: number } | null {
    return this.#progress;
  }

  /** Writes a span's first line. When it settles, the line survives this process (and a power cut with `sync`). */
  async start(record: SpanRecord): Promise<void> {
    this.#write([record], "opens");
    if (this.#sync) await this.#log.settle();
  }

  /** Writes a span that has one line only: a violation, a refusal, an event. */
  event(record: SpanRecord): void {
    this.#write([record], "whole");
  }

  /** Writes lines of any kind in their order: all of them, or none. A line that opens a span waits for another one. */
  addAll(records: readonly SpanRecord[]): void {
    this.#write(records, undefined);
  }

  /** Writes a span's last line, now or as soon as the disk has room again. */
  close(record: SpanRecord): void {
    this.#late.add(record);
  }

  /** Closes a span whose command broke for a reason that is a bug, if it was opened; the reason goes to the caller. */
  closeFailed(started: SpanRecord, error: unknown): void {
    if (this.#index.find(started.span_id) === undefined) return;
    try {
      this.close(failedEnd(started, error));
    } catch {
      // The trace cannot be written, ignoring: the caller throws the first error, and the next broker closes the span.
    }
  }

  find(span: string): Span | undefined {
    const entry = this.#index.find(span);
    return entry && readSpan(this.#log, span, entry.end ?? entry.start, this.onFault);
  }

  childrenOf(span: string): readonly Span[] {
    return this.childIds(span).flatMap((child) => this.find(child) ?? []);
  }

  /** In the order in which they were made: those behind `after`, at most `limit`. */
  childIds(span: string, after?: string, limit?: number): readonly string[] {
    return this.#index.children.of(span, after, limit);
  }

  parentOf(span: string): string | null | undefined {
    return this.#index.find(span)?.parent;
  }

  /** A page of spans, newest first, at most `limit`. It may hold fewer although there are more: `next` leads on. */
  list(query: SpanQuery): SpanPage {
    const { rows, next } = this.#index.list(query);
    return { spans: rows.flatMap((row) => this.find(row.span) ?? []), next };
  }

  async end(): Promise<void> {
    clearTimeout(this.#marking);
    clearInterval(this.#retaining);
    this.#ending.abort();
    await this.#indexing;
    await this.#upkeep.end();
    this.#late.end();
    await this.#mark();
    await this.#log.settle();
    await this.#index.close();
    this.#log.close();
  }

  #write(records: readonly SpanRecord[], part: LinePart | undefined): void {
    const before = this.#log.head.seq;
    const extents = this.#log.appendAll(records);
    for (const [at, record] of records.entries()) {
      this.#note(record, part ?? partOf(record), before + 1 + at, extents[at] as Extent);
      for (const follower of this.#followers) follower.note(record);
    }
    this.#scheduleMark();
  }

  #note(record: SpanRecord, part: LinePart, seq: number, extent: Extent): void {
    const { span_id: id } = record;
    if (part === "closes" || (part === "either" && this.#running.has(id))) {
      this.#index.addEnd(record, extent);
      return this.#running.end(id);
    }
    this.#index.addStart(record, seq, extent, part !== "opens");
    if (part === "opens") this.#running.begin(id, extent.file);
  }

  #closeLost(): void {
    for (const id of this.#index.stillOpen()) {
      const span = this.#running.has(id) ? undefined : this.find(id);
      if (span !== undefined && isOpening(span)) this.close(lostEnd(span));
    }
  }

  async #indexOlder(backlog: Backlog): Promise<void> {
    try {
      const onProgress = (read: number, all: number): void => {
        this.#options.onProgress?.(read, all);
        this.#progress = { read, all };
      };
      if (backlog.length > 0) onProgress(0, 1);
      await indexBacklog(this.#log, this.#index, backlog, onProgress, this.#ending.signal);
      if (this.#ending.signal.aborted) return;
      this.#progress = null;
      if (backlog.length > 0) this.#closeLost();
      this.#upkeep.retain();
    } catch (error) {
      this.onFault("Older spans are not found until the next start: their index cannot be made", error);
    }
  }

  #inUse(): InUse {
    const held = (this.#options.held?.() ?? []).flatMap((span) => this.#index.find(span) ?? []);
    const files = held.map(({ start, end }) => (end ?? start).file);
    return {
      file: Math.min(this.#running.oldestFile, ...files),
      since: Math.min(...this.#followers.map((follower) => follower.needs())),
    };
  }

  /** One watermark for all lines of the next moments: LMDB commits them together. */
  #scheduleMark(): void {
    if (this.#ending.signal.aborted) return;
    this.#marking ??= setTimeout(() => {
      this.#marking = undefined;
      this.#upkeep.rotateIfLarge();
      void this.#mark();
    }, MARK_DELAY_MS);
  }

  #mark(): Promise<boolean> {
    const followed = this.#followers.map((follower) => follower.changes());
    return this.#index.flush({ end: this.#log.end, head: this.#log.head }, followed);
  }
}
