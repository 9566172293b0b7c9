/**
 * The record of what was asked and what happened: the trace file (the truth) and its index.
 * A span is started before its command has any effect and closed when it has ended; a broker that died between
 * the two finds the span again when it starts and closes it as `lost`.
 */
import type { Span } from "../../schemas/generated/types.ts";
import { redact } from "./redact.ts";
import { checkLine, EMPTY_HEAD, type Head } from "./chain.ts";
import { catchUp } from "./catch-up.ts";
import type { Follower } from "./follower.ts";
import { type OnFault, SpanIndex, type SpanQuery } from "./span-index.ts";
import { TraceFile } from "./trace-file.ts";

/** A span as its owner hands it in: what the chain adds is missing. */
export type SpanRecord = Omit<Span, "seq" | "prev" | "hash">;

export type SpanPage = { readonly spans: readonly Span[]; readonly next: number | null };

/** How far the database's copy of the chain's head may be behind the file, in milliseconds. */
const MARK_DELAY_MS = 500;

/** No id is longer; LMDB throws at keys of more than 1,978 bytes. */
const MAX_ID = 128;

export class Trace {
  readonly #file: TraceFile;
  readonly #index: SpanIndex;
  readonly #sync: boolean;
  readonly #followers: readonly Follower[];
  #marking: NodeJS.Timeout | undefined;

  private constructor(file: TraceFile, index: SpanIndex, sync: boolean, followers: readonly Follower[]) {
    this.#file = file;
    this.#index = index;
    this.#sync = sync;
    this.#followers = followers;
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
  ): Promise<Trace> {
    const file = new TraceFile(path, headOfLastLine);
    const index = new SpanIndex(database, { onFault });
    for (const follower of followers) follower.open(index.root);
    await catchUp(file, index, followers, onFault);
    const trace = new Trace(file, index, sync, followers);
    trace.#closeLost();
    await trace.#mark();
    return trace;
  }

  /** The database that other stores of the broker share. */
  get database(): SpanIndex["root"] {
    return this.#index.root;
  }

  get head(): Head {
    return this.#file.head;
  }

  /** Writes a span's first line. When it settles, the line survives this process (and a power cut with `sync`). */
  async start(record: SpanRecord): Promise<void> {
    this.#add(record, false);
    if (this.#sync) await this.#file.settle();
  }

  /** Writes a span that has one line only: a violation, a refusal, an event. */
  event(record: SpanRecord): void {
    this.#add(record, true);
  }

  /** Writes a span's last line. */
  close(record: SpanRecord): void {
    const extent = this.#file.append(record);
    this.#index.addEnd(record.span_id, extent);
    this.#tell(record);
    this.#scheduleMark();
  }

  /** Closes a span whose command broke for a reason that is a bug, if it was opened; the reason goes to the caller. */
  closeFailed(started: SpanRecord, error: unknown): void {
    if (this.#index.find(started.span_id) === undefined) return;
    const message = error instanceof Error ? error.message : String(error);
    try {
      this.close({
        ...started,
        ts: new Date().toISOString(),
        event_type: "command_complete",
        outcome: "failed",
        code: "internal",
        message: redact(message, "message").text,
        replayable: false,
        ...unseenEnd(started),
      });
    } catch {
      // The trace cannot be written, ignoring: the caller throws the first error, and the next broker closes the span.
    }
  }

  find(span: string): Span | undefined {
    if (span.length > MAX_ID) return undefined;
    const entry = this.#index.find(span);
    return entry === undefined ? undefined : this.#read(entry.end ?? entry.start);
  }

  childrenOf(span: string): readonly Span[] {
    return this.#index.childrenOf(span).flatMap((child) => this.find(child) ?? []);
  }

  /** A page of spans, newest first, at most `limit`. `since` is an ISO time; spans whose last
   * line is older are left out. */
  list(query: SpanQuery, since: string | undefined): SpanPage {
    const rows = this.#index.list(query);
    const spans = rows.flatMap((row) => this.find(row.span) ?? []);
    const recent = since === undefined ? spans : spans.filter((span) => span.ts >= since);
    const last = rows.at(-1);
    const more = rows.length === query.limit;
    return { spans: recent, next: more && last !== undefined ? last.seq : null };
  }

  async end(): Promise<void> {
    clearTimeout(this.#marking);
    await this.#mark();
    await this.#file.settle();
    await this.#index.close();
    this.#file.close();
  }

  #add(record: SpanRecord, ends: boolean): void {
    const start = this.#file.append(record);
    const entry = { agent: record.agent_id, session: record.session_id, start };
    this.#index.addStart(record.span_id, entry, record.parent_span, this.#file.head.seq, ends);
    this.#tell(record);
    this.#scheduleMark();
  }

  #tell(record: SpanRecord): void {
    for (const follower of this.#followers) follower.note(record);
  }

  #closeLost(): void {
    for (const id of this.#index.stillOpen()) {
      const span = this.find(id);
      if (span === undefined) continue;
      const { seq: _seq, prev: _prev, hash: _hash, ...record } = span;
      this.close({
        ...record,
        ts: new Date().toISOString(),
        event_type: "command_complete",
        outcome: "lost",
        replayable: false,
        ...unseenEnd(record),
      });
    }
  }

  #read(extent: { readonly offset: number; readonly length: number }): Span {
    return JSON.parse(this.#file.read(extent)) as Span;
  }

  /** One watermark for all lines of the next moments: LMDB commits them together. */
  #scheduleMark(): void {
    this.#marking ??= setTimeout(() => {
      this.#marking = undefined;
      void this.#mark();
    }, MARK_DELAY_MS);
  }

  #mark(): Promise<void> {
    const followed = this.#followers.map((follower) => follower.changes());
    return this.#index.flush({ size: this.#file.size, head: this.#file.head }, followed);
  }
}

/** Nobody saw the end of this command: the most that it can have run is until now, or until its time was over. */
function unseenEnd({ ts, timeout_ms: timeout }: SpanRecord): Pick<SpanRecord, "charged_ms"> {
  const since = Math.max(0, Date.now() - Date.parse(ts));
  return { charged_ms: timeout === undefined ? since : Math.min(since, timeout) };
}

/** The head that the last line makes. A last line that is no span breaks the chain: said, never guessed. */
function headOfLastLine(line: string | undefined): Head {
  if (line === undefined) return EMPTY_HEAD;
  const { seq, prev } = JSON.parse(line) as { seq: number; prev: string | null };
  const checked = checkLine(line, { seq: seq - 1, hash: prev });
  if ("head" in checked) return checked.head;
  throw new Error(
    `The last line of the trace cannot be continued: ${checked.wrong}. Move the file away to start a new one`,
  );
}
