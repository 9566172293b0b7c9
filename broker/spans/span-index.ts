/**
 * The LMDB index of the trace: the place of each span's lines, their order, and the head of the chain. Never the record: missing
 * entries are read again from the trace. Only one process writes.
 */
import { setImmediate as turn } from "node:timers/promises";
import { type Database, open, type RootDatabase } from "lmdb";
import { DatabaseRoom, prepareDatabase } from "./database-file.ts";
import type { Changes } from "./follower.ts";
import {
  endedEntry,
  entryOf,
  MAX_ID,
  read,
  RUNNING,
  type SpanEntry,
  stored,
  type StoredEntry,
} from "./span-entry.ts";
import {
  EVERY_SPAN,
  isRunning,
  listOf,
  type Lists,
  newestFirst,
  page,
  putRows,
  removeRows,
  rowsBefore,
  type SpanQuery,
  type SpanRow,
  type SpanRows,
} from "./span-lists.ts";
import type { Extent, Position } from "./trace-log.ts";
import type { SpanRecord } from "./trace.ts";
import type { TraceDropped } from "../../schemas/generated/types.ts";
import type { Head } from "./chain.ts";

/** Receives faults that lose no span: the trace itself is written. */
export type OnFault = (what: string, error: unknown) => void;

/** Spans written to LMDB per turn of the event loop: every request waits for these few milliseconds. */
const SPANS_A_TURN = 200;

/** Bytes of new pages that a span's commit takes at most, and those that the other writes of the database may need meanwhile. */
const BYTES_OF_SPAN = 4096;
const LEAST_ROOM = 256 * 1024;

/**
 * New entries wait in memory until `flush` writes them to LMDB in one or a few transactions. A transaction per command cost a
 * quarter of a millisecond, and its journal commit stalled the next append: together they doubled the cost of a command.
 */
export class SpanIndex {
  readonly root: RootDatabase;
  readonly state: IndexState;
  readonly children: SpanChildren;
  readonly #spans: Database<StoredEntry, string>;
  readonly #lists: Lists;
  readonly #open: Database<true, string>;
  /** Entries missing or outdated in LMDB. */
  readonly #pending = new Map<string, SpanEntry>();
  #flushing = Promise.resolve();
  readonly #onFault: OnFault;
  readonly #room: DatabaseRoom | undefined;
  #saidFull = false;

  /** `overlappingSync: false`: otherwise a killed writer can leave a broken environment. */
  constructor(folder: string, options: { readonly readOnly?: boolean; readonly onFault?: OnFault } = {}) {
    this.#onFault = options.onFault ?? (() => {});
    prepareDatabase(folder, options.readOnly === true ? "read" : "write");
    this.root = open({
      path: folder,
      overlappingSync: false,
      maxDbs: 32,
      readOnly: options.readOnly === true,
    });
    this.state = new IndexState(this.root);
    this.children = new SpanChildren(this.root);
    this.#spans = this.root.openDB({ name: "spans" });
    this.#lists = this.root.openDB({ name: "order" });
    this.#open = this.root.openDB({ name: "open" });
    if (options.readOnly === true) return;
    this.#room = new DatabaseRoom(folder, (act) => this.root.transactionSync(act));
    this.#room.keep();
  }

  /** Adds a new span's first line. `ends`: whether the line is the span's only line. */
  addStart(record: SpanRecord, seq: number, start: Extent, ends: boolean): void {
    const entry = entryOf(record, seq, start, ends);
    this.#pending.set(record.span_id, entry);
    this.children.add(entry.parent, record.span_id);
  }

  addEnd(record: SpanRecord, end: Extent): void {
    const entry = this.find(record.span_id);
    if (entry !== undefined) this.#pending.set(record.span_id, endedEntry(entry, record, end));
  }

  /** Number of spans waiting in memory. */
  get waiting(): number {
    return this.#pending.size;
  }

  /**
   * Writes all waiting entries to LMDB, with the trace's watermark and the followers' state. Resolves after the commit, to
   * whether it succeeded. Flushes run one at a time: entries added meanwhile wait for the next flush.
   *
   * @param most spans per turn of the event loop.
   */
  flush(
    watermark: Watermark,
    followed: readonly Changes[] = [],
    most: number = SPANS_A_TURN,
  ): Promise<boolean> {
    const flushed = this.#flushing.then(() => this.#write(watermark, followed, most));
    this.#flushing = flushed.then(() => {});
    return flushed;
  }

  find(span: string): SpanEntry | undefined {
    if (span.length > MAX_ID) return undefined;
    const pending = this.#pending.get(span);
    if (pending !== undefined) return pending;
    const row = this.#spans.get(span);
    return row === undefined ? undefined : read(row);
  }

  /** Returns the started and unclosed spans, oldest first; committed entries only. */
  stillOpen(): readonly string[] {
    return [...this.#open.getKeys()];
  }

  list(query: SpanQuery): SpanRows {
    const find = (span: string): SpanEntry | undefined => this.find(span);
    const { before = Number.MAX_SAFE_INTEGER } = query;
    if (isRunning(query)) return page(this.#running(before), query, find);
    const fresh = this.#fresh(query.programs ?? false);
    return page(rowsBefore(this.#lists, listOf(query), before, fresh), query, find);
  }

  /**
   * Forgets at most `limit` spans listed by lines up to a number; resolves to the number of forgotten rows. A span whose last
   * line stays is listed by that line afterwards: `stays` returns its number.
   */
  async removeUpTo(
    last: number,
    limit: number,
    stays: (extent: Extent) => number | undefined,
  ): Promise<number> {
    const rows = EVERY_SPAN.flatMap((list) => [
      ...this.#lists.getRange({ start: [list, 0], end: [list, last + 1], limit }),
    ]);
    const writes: Promise<unknown>[] = [];
    for (const { key, value: span } of rows) {
      const entry = this.find(span);
      writes.push(this.#lists.remove(key));
      if (entry === undefined || entry.seq !== key[1]) continue;
      writes.push(...removeRows(this.#lists, entry));
      const seq = entry.end === undefined ? undefined : stays(entry.end);
      if (entry.end === undefined || seq === undefined) writes.push(...this.#removeEntry(span, entry));
      else {
        const { end: start, ...rest } = entry;
        const moved = { ...rest, seq, start };
        writes.push(...this.#put(span, moved));
      }
    }
    await Promise.all(writes);
    return rows.length;
  }

  /** Forgets all spans before re-indexing. The watermark stays until the first commit: a failed start re-indexes again. */
  async clear(): Promise<void> {
    await Promise.all([this.#spans, this.#lists, this.children, this.#open].map((part) => part.clearAsync()));
  }

  async close(): Promise<void> {
    await this.root.close();
    this.#room?.close();
  }

  /**
   * Retries a failed commit (a full disk) with the next flush: no entry is forgotten before its commit. The watermark is
   * committed with the last entries of this flush: a broker killed earlier reads the lines again.
   */
  async #write(watermark: Watermark, followed: readonly Changes[], most: number): Promise<boolean> {
    const room = (this.#room?.keep() ?? Number.POSITIVE_INFINITY) - LEAST_ROOM;
    const all = [...this.#pending];
    const entries = all.slice(0, Math.max(0, Math.floor(room / BYTES_OF_SPAN)));
    // Without the watermark: with it, a later start would not read the lines of the entries left out.
    if (entries.length < all.length || room < 0) return await this.#writeSome(entries.slice(0, most));
    this.#saidFull = false;
    const commits: Promise<boolean>[] = [];
    let from = 0;
    for (; entries.length - from > most; from += most) {
      commits.push(this.#commit(entries.slice(from, from + most), () => []));
      await turn();
    }
    if ((await Promise.all(commits)).includes(false)) return false;
    const changed = (): readonly Promise<unknown>[] => followed.flatMap((changes) => changes.write());
    const last = (): readonly Promise<unknown>[] => [...changed(), ...this.state.putWatermark(watermark)];
    if (!(await this.#commit(entries.slice(from), last))) return false;
    for (const changes of followed) changes.committed();
    return true;
  }

  async #writeSome(entries: readonly (readonly [string, SpanEntry])[]): Promise<false> {
    if (!this.#saidFull)
      this.#onFault("The index of the trace waits", new Error("The disk has too little room"));
    this.#saidFull = true;
    if (entries.length > 0) await this.#commit(entries, () => []);
    return false;
  }

  /** Commits entries together with the writes of `also`. */
  async #commit(
    entries: readonly (readonly [string, SpanEntry])[],
    also: () => readonly Promise<unknown>[],
  ): Promise<boolean> {
    const writes = [...entries.flatMap(([span, entry]) => this.#put(span, entry)), ...also()];
    const failed = (await Promise.allSettled(writes)).find((write) => write.status === "rejected");
    if (failed !== undefined) {
      this.#onFault("Cannot write the index of the trace", failed.reason);
      return false;
    }
    for (const [span, entry] of entries) {
      if (this.#pending.get(span) === entry) this.#pending.delete(span);
      this.children.committed(entry.parent, span);
    }
    return true;
  }

  #put(span: string, entry: SpanEntry): readonly Promise<boolean>[] {
    // A line read again after a crash may have been committed as running before the crash.
    const open = entry.outcome === RUNNING ? this.#open.put(span, true) : this.#open.remove(span);
    const rows = [...putRows(this.#lists, entry, span), ...this.children.put(entry.parent, span)];
    return [this.#spans.put(span, stored(entry)), open, ...rows];
  }

  #removeEntry(span: string, { parent }: SpanEntry): readonly Promise<boolean>[] {
    return [this.#spans.remove(span), this.#open.remove(span), ...this.children.remove(parent, span)];
  }

  /** Entries missing or outdated in LMDB, newest first. */
  #fresh(programs: boolean): readonly SpanRow[] {
    const wanted = [...this.#pending].filter(([, { isProgram }]) => isProgram === programs);
    return newestFirst(wanted.map(([span, { seq }]) => ({ seq, span })));
  }

  /** Commands and programs possibly still running, newest first; too few for a stored list. */
  #running(before: number): readonly SpanRow[] {
    const spans = new Set([...this.stillOpen(), ...this.#pending.keys()]);
    const rows = [...spans].flatMap((span): SpanRow | readonly never[] => {
      const entry = this.find(span);
      return entry?.outcome === RUNNING && entry.seq < before ? { seq: entry.seq, span } : [];
    });
    return newestFirst(rows);
  }
}

/** The children of each span, ordered by id and so by creation time. */
export class SpanChildren {
  readonly #stored: Database<string, string>;
  /** Children missing in LMDB. */
  readonly #fresh = new Map<string, Set<string>>();

  constructor(root: RootDatabase) {
    this.#stored = root.openDB({ name: "children", dupSort: true, encoding: "ordered-binary" });
  }

  /** Remembers a child at once; {@link put} stores it later. */
  add(parent: string | null, span: string): void {
    if (parent === null) return;
    const fresh = this.#fresh.get(parent);
    if (fresh === undefined) this.#fresh.set(parent, new Set([span]));
    else fresh.add(span);
  }

  put(parent: string | null, span: string): readonly Promise<boolean>[] {
    return parent === null ? [] : [this.#stored.put(parent, span)];
  }

  /** Forgets a child in memory after its commit to LMDB. */
  committed(parent: string | null, span: string): void {
    const fresh = parent === null ? undefined : this.#fresh.get(parent);
    if (parent === null || fresh?.delete(span) !== true) return;
    if (fresh.size === 0) this.#fresh.delete(parent);
  }

  remove(parent: string | null, span: string): readonly Promise<boolean>[] {
    return parent === null ? [] : [this.#stored.remove(parent, span)];
  }

  clearAsync(): Promise<void> {
    return this.#stored.clearAsync();
  }

  /** Returns at most `limit` children after `after`. */
  of(parent: string, after: string | undefined, limit?: number): readonly string[] {
    if (parent.length > MAX_ID) return [];
    const behind = {
      ...(after === undefined ? {} : { start: after, exclusiveStart: true }),
      ...(limit === undefined ? {} : { limit }),
    };
    const stored = [...this.#stored.getValues(parent, behind)];
    const fresh = [...(this.#fresh.get(parent) ?? [])].filter((span) => after === undefined || span > after);
    if (fresh.length === 0) return stored;
    return [...new Set([...stored, ...fresh])].sort().slice(0, limit);
  }
}

/** The indexed end of the trace, and the chain's head there. */
type Watermark = { readonly end: Position; readonly head: Head };

/** Version of the row format. An index of another version is rebuilt from the trace. */
const FORM = 4;

const MAX_LOST_HEADS = 16;

type Known = {
  watermark: Watermark;
  form: number;
  told: number;
  dropped: TraceDropped;
};

/** Index state about the trace as a whole. */
class IndexState {
  readonly #state: Database<unknown, string>;
  readonly #lost: Database<readonly string[], string>;

  constructor(root: RootDatabase) {
    this.#state = root.openDB({ name: "state" });
    this.#lost = root.openDB({ name: "lost-heads" });
  }

  get watermark(): Watermark | undefined {
    return this.#get("form") === FORM ? this.#get("watermark") : undefined;
  }

  /** The last known head of the chain, whatever the version of the index. */
  get head(): Head | undefined {
    return this.#get("watermark")?.head;
  }

  /**
   * The last line passed to followers before the index was lost. Needed while re-indexing: a broker killed meanwhile leaves a
   * watermark of older lines.
   */
  get told(): number {
    return this.#get("told") ?? Number.NEGATIVE_INFINITY;
  }

  async putTold(seq: number): Promise<void> {
    await this.#state.put("told", seq);
  }

  async forgetTold(): Promise<void> {
    await this.#state.remove("told");
  }

  putWatermark(watermark: Watermark): readonly Promise<boolean>[] {
    return [this.#state.put("form", FORM), this.#state.put("watermark", watermark)];
  }

  /** The content of the last line about dropped files. */
  get dropped(): TraceDropped | undefined {
    return this.#get("dropped");
  }

  async putDropped(dropped: TraceDropped): Promise<void> {
    await this.#state.put("dropped", dropped);
  }

  /** Heads lost from the trace by cutting or replacing it. Kept for `trace verify`. */
  get lostHeads(): readonly string[] {
    return this.#lost.get("heads") ?? [];
  }

  async addLostHead(head: string): Promise<void> {
    await this.#lost.put("heads", [...new Set([...this.lostHeads, head])].slice(-MAX_LOST_HEADS));
  }

  #get<Name extends keyof Known>(name: Name): Known[Name] | undefined {
    return this.#state.get(name) as Known[Name] | undefined;
  }
}
