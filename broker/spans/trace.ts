/**
 * The record of requests and their outcomes: the trace's files (the truth) and their index. A span is started before its command
 * has any effect and closed after the command's end. A span left open by a killed broker is closed as `lost` by the next broker.
 */
import { setImmediate as turn } from "node:timers/promises";
import type { Span } from "../../schemas/generated/types.ts";
import { redact } from "../secrets/redact.ts";
import { catchUp, type OnProgress } from "./catch-up.ts";
import type { Head } from "./chain.ts";
import type { Follower } from "./follower.ts";
import { readSpan } from "./trace-log.ts";
import { type InUse, type TraceLimits, traceLimits } from "./retention.ts";
import { isCommand } from "./span-entry.ts";
import { refusedIfDamaged } from "./database-file.ts";
import { type OnFault, SpanIndex } from "./span-index.ts";
import type { SpanPage, SpanQuery } from "./span-lists.ts";
import { type Extent, TraceLog } from "./trace-log.ts";
import { closingType, isOpening, type LinePart, partOf } from "./two-lines.ts";
import { Upkeep } from "./upkeep.ts";

/** A span as given by its owner, without the fields added by the chain. */
export type SpanRecord = Omit<Span, "seq" | "prev" | "hash">;

/** Delay in milliseconds before the database's copy of the chain's head is updated. */
const MARK_DELAY_MS = 500;

/** Spans of a session that are counted per turn of the event loop. */
const SPANS_A_TURN = 1000;

/** Interval of looking for old files, besides each rotation. */
const RETAIN_MS = 60 * 60 * 1000;

/** Interval of retrying last lines after a full disk. */
const LATE_RETRY_MS = 1000;

/** Bound on waiting lines, at one or two kilobytes each. */
const MAX_LATE = 10_000;

export type TraceOptions = {
  readonly limits?: () => TraceLimits;
  /** Returns the spans whose lines must be kept: spans with held changes. */
  readonly held?: () => readonly string[];
  /** Receives the progress of long reads: bytes read, and bytes in all. */
  readonly onProgress?: OnProgress;
};

export class Trace {
  readonly #log: TraceLog;
  readonly #index: SpanIndex;
  readonly #sync: boolean;
  readonly #followers: readonly Follower[];
  readonly onFault: OnFault;
  readonly #options: TraceOptions;
  readonly #upkeep: Upkeep;
  readonly #late: LateLines;
  /** Spans opened by this broker, with the file of their first line: the file is kept until the span is closed. */
  readonly #running = new Map<string, number>();
  readonly #counts = { spans: new Map<string, number>(), commands: new Map<string, number>() };
  #isEnding = false;
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
    this.#late = new LateLines((line, part) => this.#write([line], part), onFault);
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
   * Opens the trace at `path` with its index. Indexes missing lines (for a lost index the whole trace), and closes spans left
   * open by an earlier broker. `sync` makes every start durable against a power cut. `followers` receive every line.
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
    try {
      const index = new SpanIndex(database, { onFault });
      for (const follower of followers) follower.open(index.root);
      await catchUp(log, index, followers, onFault, options.onProgress ?? (() => {}));
      const trace = new Trace(log, index, sync, onFault, followers, options);
      trace.#closeLost();
      await trace.#mark();
      await trace.#upkeep.finish();
      trace.#upkeep.retain();
      trace.#retaining = setInterval(() => trace.#upkeep.retain(), RETAIN_MS).unref();
      return trace;
    } catch (error) {
      throw refusedIfDamaged(database, error);
    }
  }

  /** Shared with other stores of the broker. */
  get database(): SpanIndex["root"] {
    return this.#index.root;
  }

  get head(): Head {
    return this.#log.head;
  }

  /** Writes a span's first line. Resolves once the line survives this process (with `sync`, also a power cut). */
  async start(record: SpanRecord): Promise<void> {
    this.#write([record], "opens");
    if (this.#sync) await this.#log.settle();
  }

  /** Writes a span with a single line: a violation, a refusal, an event. */
  event(record: SpanRecord): void {
    this.#write([record], "whole");
  }

  /**
   * Writes a span with a single line about what a world has done already, now or once the disk has room again. Never throws: it is
   * called where a failure would end the broker, and with it all worlds.
   */
  observe(record: SpanRecord): void {
    try {
      this.#late.add(record, "whole");
    } catch (error) {
      this.onFault(`The line of ${record.span_id} is lost`, error);
    }
  }

  /** Writes lines of any kind in order: all or none. A line that opens a span expects a closing line later. */
  addAll(records: readonly SpanRecord[]): void {
    this.#write(records, undefined);
  }

  /** Writes a span's last line, now or once the disk has room again. */
  close(record: SpanRecord): void {
    this.#late.add(record, "closes");
  }

  /** Closes a span, if opened, whose command failed by a bug; the caller throws the error. */
  closeFailed(started: SpanRecord, error: unknown): void {
    if (this.#index.find(started.span_id) === undefined) return;
    try {
      this.close(failedEnd(started, error));
    } catch {
      // The trace cannot be written, ignoring: the caller throws the first error, and the next broker closes the span.
    }
  }

  /** Lines written by this broker by event type, and ended and refused commands by verdict. */
  get counts(): { readonly [of in "spans" | "commands"]: ReadonlyMap<string, number> } {
    return this.#counts;
  }

  find(span: string): Span | undefined {
    const entry = this.#index.find(span);
    return entry && readSpan(this.#log, span, entry.end ?? entry.start, this.onFault);
  }

  childrenOf(span: string): readonly Span[] {
    return this.childIds(span).flatMap((child) => this.find(child) ?? []);
  }

  /** Returns children in order of creation, at most `limit` after `after`. */
  childIds(span: string, after?: string, limit?: number): readonly string[] {
    return this.#index.children.of(span, after, limit);
  }

  parentOf(span: string): string | null | undefined {
    return this.#index.find(span)?.parent;
  }

  /**
   * Returns a page of spans, newest first, at most `limit`. A page may hold fewer spans although more exist: `next` continues.
   */
  list(query: SpanQuery): SpanPage {
    const { rows, next } = this.#index.list(query);
    return { spans: rows.flatMap((row) => this.find(row.span) ?? []), next };
  }

  /** Counts the commands of a session, and finds the newest one. */
  async commandsOf(session: string): Promise<{ readonly count: number; readonly last: Span | undefined }> {
    let count = 0;
    let last: string | undefined;
    for (let before: number | undefined = Number.MAX_SAFE_INTEGER; before !== undefined; ) {
      const { rows, next } = this.#index.list({ session, agent: undefined, before, limit: SPANS_A_TURN });
      const commands = rows.filter(({ span }) => isCommand(this.#index.find(span)));
      count += commands.length;
      last ??= commands[0]?.span;
      before = next ?? undefined;
      if (before !== undefined) await turn();
    }
    return { count, last: last === undefined ? undefined : this.find(last) };
  }

  async end(): Promise<void> {
    clearTimeout(this.#marking);
    clearInterval(this.#retaining);
    this.#isEnding = true;
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
      this.#count(record);
      for (const follower of this.#followers) follower.note(record);
    }
    this.#scheduleMark();
  }

  #note(record: SpanRecord, part: LinePart, seq: number, extent: Extent): void {
    const { span_id: id } = record;
    if (part === "closes" || (part === "either" && this.#running.has(id))) {
      this.#index.addEnd(record, extent);
      this.#running.delete(id);
      return;
    }
    this.#index.addStart(record, seq, extent, part !== "opens");
    if (part === "opens") this.#running.set(id, extent.file);
  }

  #count({ event_type: type, decision, violation }: SpanRecord): void {
    const { spans, commands } = this.#counts;
    spans.set(type, (spans.get(type) ?? 0) + 1);
    const verdict = decision?.verdict;
    const refused = type === "violation" && !violation && (verdict === "deny" || verdict === "ask");
    if (verdict === undefined || !(refused || type === "command_complete")) return;
    commands.set(verdict, (commands.get(verdict) ?? 0) + 1);
  }

  #closeLost(): void {
    for (const id of this.#index.stillOpen()) {
      const span = this.#running.has(id) ? undefined : this.find(id);
      if (span !== undefined && isOpening(span)) this.close(lostEnd(span));
    }
  }

  #inUse(): InUse {
    const held = (this.#options.held?.() ?? []).flatMap((span) => this.#index.find(span) ?? []);
    const files = held.map(({ start, end }) => (end ?? start).file);
    return {
      file: Math.min(...this.#running.values(), ...files),
      since: Math.min(...this.#followers.map((follower) => follower.needs())),
    };
  }

  /** Schedules one watermark for all lines of the next half second, so that LMDB commits them together. */
  #scheduleMark(): void {
    if (this.#isEnding) return;
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

type LateLine = { readonly line: SpanRecord; readonly part: LinePart };

/**
 * Lines of what has happened already, waiting for disk space. A command that filled the disk has run all the same, so its last
 * line waits here. If the broker dies first, the next broker closes the span as `lost`.
 */
class LateLines {
  readonly #write: (line: SpanRecord, part: LinePart) => void;
  readonly #onFault: OnFault;
  readonly #late: LateLine[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(write: (line: SpanRecord, part: LinePart) => void, onFault: OnFault) {
    this.#write = write;
    this.#onFault = onFault;
  }

  /** Writes a line, or keeps it after a kernel error. Throws any other error, and when too many lines wait. */
  add(line: SpanRecord, part: LinePart): void {
    try {
      this.#write(line, part);
    } catch (error) {
      // Half of the room is for the ends of commands.
      const most = part === "closes" ? MAX_LATE : MAX_LATE / 2;
      if (!isRefusal(error) || this.#late.length >= most) throw error;
      this.#onFault(`A line of ${line.span_id} waits for disk space`, error);
      this.#late.push({ line, part });
      this.#schedule();
    }
  }

  /** Retries a last time. */
  end(): void {
    clearTimeout(this.#timer);
    this.#again();
    clearTimeout(this.#timer);
  }

  #schedule(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#again();
    }, LATE_RETRY_MS);
    this.#timer.unref();
  }

  #again(): void {
    try {
      for (let late = this.#late[0]; late !== undefined; late = this.#late[0]) {
        this.#write(late.line, late.part);
        this.#late.shift();
      }
    } catch (error) {
      this.#onFault(`${this.#late.length} lines wait for disk space`, error);
      this.#schedule();
    }
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof Error && "syscall" in error;
}

/** Builds the last line of a command left open by a dead broker. */
function lostEnd({ seq: _seq, prev: _prev, hash: _hash, ...record }: Span): SpanRecord {
  return {
    ...record,
    ts: new Date().toISOString(),
    event_type: closingType(record),
    outcome: "lost",
    replayable: false,
    ...unseen(record),
  };
}

/** Builds the last line of a command that failed by a bug. */
function failedEnd(started: SpanRecord, error: unknown): SpanRecord {
  const message = error instanceof Error ? error.message : String(error);
  return {
    ...started,
    ts: new Date().toISOString(),
    event_type: closingType(started),
    outcome: "failed",
    code: "internal",
    message: redact(message, "message").text,
    replayable: false,
    ...unseen(started),
  };
}

/** Returns the longest possible run time of the command: until now, or until its time-out. */
function unseen({ ts, timeout_ms: timeout, event_type: type }: SpanRecord): Pick<SpanRecord, "charged_ms"> {
  // Programs are not charged; their command is.
  if (type === "exec") return {};
  const since = Math.max(0, Date.now() - Date.parse(ts));
  return { charged_ms: timeout === undefined ? since : Math.min(since, timeout) };
}
