/**
 * LMDB beside the trace: where each span's lines lie, in which order, and the head of the chain.
 * It is an index, never the record: whatever it lacks is read again from the trace. One process writes.
 */
import { type Database, open, type RootDatabase } from "lmdb";
import { refuseDamaged } from "./database-file.ts";
import type { Changes } from "./follower.ts";
import { firstOf, writeInTurns } from "./in-turns.ts";
import { IndexState, type Watermark } from "./index-state.ts";
import { SpanChildren } from "./span-children.ts";
import {
  endedEntry,
  entryOf,
  MAX_ID,
  olderEntry,
  read,
  type SpanEntry,
  stored,
  type StoredEntry,
} from "./span-entry.ts";
import {
  EVERY_SCOPE,
  type Order,
  page,
  putEndRows,
  putRows,
  removeRows,
  RUNNING,
  runningRows,
  type SpanQuery,
  type SpanRow,
  type SpanRows,
} from "./span-order.ts";
import type { Extent } from "./trace-log.ts";
import type { SpanRecord } from "./trace.ts";

/** Told of a fault that costs no span: the trace itself is written. */
export type OnFault = (what: string, error: unknown) => void;

export type Placed = { readonly line: SpanRecord & { readonly seq: number }; readonly extent: Extent };

/** What is handed to LMDB before it is waited for. */
const SPANS_A_COMMIT = 2000;

/**
 * What is added waits in memory until `flush`, which hands it to LMDB as one transaction, or a few. One for each command
 * cost a quarter of a millisecond, and its journal commit stalled the next append: that doubled the price of a command.
 */
export class SpanIndex {
  readonly root: RootDatabase;
  readonly state: IndexState;
  readonly children: SpanChildren;
  readonly #spans: Database<StoredEntry, string>;
  readonly #order: Order;
  readonly #open: Database<true, string>;
  /** What LMDB does not show yet: entries by span, and which of those it does not know at all. */
  readonly #pending = new Map<string, SpanEntry>();
  readonly #unlisted = new Set<string>();
  #flushing = Promise.resolve();
  readonly #onFault: OnFault;

  /** `overlappingSync: false`: with it, a writer that is killed can leave the environment broken. */
  constructor(folder: string, options: { readonly readOnly?: boolean; readonly onFault?: OnFault } = {}) {
    this.#onFault = options.onFault ?? (() => {});
    refuseDamaged(folder);
    this.root = open({
      path: folder,
      overlappingSync: false,
      maxDbs: 32,
      readOnly: options.readOnly === true,
    });
    this.state = new IndexState(this.root);
    this.children = new SpanChildren(this.root);
    this.#spans = this.root.openDB({ name: "spans" });
    this.#order = this.root.openDB({ name: "order" });
    this.#open = this.root.openDB({ name: "open" });
  }

  /** A new span's first line. `ends` says that no second one will follow. */
  addStart(record: SpanRecord, seq: number, start: Extent, ends: boolean): void {
    const entry = entryOf(record, seq, start, ends);
    this.#pending.set(record.span_id, entry);
    this.children.add(entry.parent, record.span_id);
    this.#unlisted.add(record.span_id);
  }

  addEnd(record: SpanRecord, end: Extent): void {
    const entry = this.find(record.span_id);
    if (entry !== undefined) this.#pending.set(record.span_id, endedEntry(entry, record, end));
  }

  /** How many spans wait in memory. */
  get waiting(): number {
    return this.#pending.size;
  }

  /**
   * Hands everything added so far to LMDB, with how far the trace is indexed by it and what its followers know there;
   * settles when it is committed, with whether it was. One at a time: what is added meanwhile waits for the next.
   */
  flush(watermark: Watermark, followed: readonly Changes[] = []): Promise<boolean> {
    const flushed = this.#flushing.then(() => this.#write(watermark, followed));
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

  /** Spans that were started and not closed, oldest first; only what is committed. */
  stillOpen(): readonly string[] {
    return [...this.#open.getKeys()];
  }

  list(query: SpanQuery): SpanRows {
    const find = (span: string): SpanEntry | undefined => this.find(span);
    if (query.outcome !== RUNNING)
      return page(this.#order, query, this.#fresh(query.programs ?? false), find);
    const open = new Set([...this.stillOpen(), ...this.#unlisted]);
    return page(this.#order, query, runningRows(open, find), find);
  }

  /**
   * Adds lines that are older than what is indexed, as far as they are not there; settles when they are committed. A span
   * whose last line is known already gets its first. `added` are the entries that LMDB may not show yet, and gets more.
   */
  addOlder(lines: readonly Placed[], added: Map<string, SpanEntry>): Promise<unknown> {
    const changed = new Map<string, SpanEntry>();
    const writes: Promise<unknown>[] = [];
    for (const { line, extent } of lines) {
      const known = added.get(line.span_id) ?? this.find(line.span_id);
      const entry = olderEntry(known, line, extent);
      if (entry === undefined) continue;
      added.set(line.span_id, entry);
      changed.set(line.span_id, entry);
      if (known !== undefined && known.seq !== entry.seq) writes.push(...removeRows(this.#order, known));
    }
    for (const [span, entry] of changed) {
      writes.push(...this.#writeNew(span, entry));
    }
    return Promise.all(writes);
  }

  /**
   * Forgets the spans that were listed by lines up to a number, some `limit` of them; settles with how many there were.
   * A span whose last line stays is listed by that one from now on: `seqOf` says its number.
   */
  async removeUpTo(
    last: number,
    limit: number,
    stays: (extent: Extent) => number | undefined,
  ): Promise<number> {
    const rows = EVERY_SCOPE.flatMap((scope) => [
      ...this.#order.getRange({ start: [scope, 0], end: [scope, last + 1], limit }),
    ]);
    const writes: Promise<unknown>[] = [];
    for (const { key, value: span } of rows) {
      const entry = this.find(span);
      writes.push(this.#order.remove(key));
      if (entry === undefined || entry.seq !== key[1]) continue;
      writes.push(...removeRows(this.#order, entry));
      const seq = entry.end === undefined ? undefined : stays(entry.end);
      if (entry.end === undefined || seq === undefined) writes.push(...this.#removeEntry(span, entry));
      else {
        const { end: start, ...rest } = entry;
        const moved = { ...rest, seq, start };
        writes.push(...this.#writeNew(span, moved));
      }
    }
    await Promise.all(writes);
    return rows.length;
  }

  /** Forgets all spans, to be filled again from the trace. The watermark stays until then: a start that breaks begins anew. */
  async clear(): Promise<void> {
    await Promise.all([this.#spans, this.#order, this.children, this.#open].map((part) => part.clearAsync()));
  }

  close(): Promise<void> {
    return this.root.close();
  }

  /**
   * A commit that fails (a full disk) is tried again with the next flush: nothing is forgotten before it is committed. The
   * watermark comes with the last of what waited at the call: a broker that is killed before reads those lines once more.
   */
  async #write(watermark: Watermark, followed: readonly Changes[]): Promise<boolean> {
    let left = this.#pending.size;
    for (; left > SPANS_A_COMMIT; left -= SPANS_A_COMMIT)
      if (!(await this.#commit(SPANS_A_COMMIT, () => []))) return false;
    const changed = (): readonly Promise<unknown>[] => followed.flatMap((changes) => changes.write());
    if (!(await this.#commit(left, () => [...changed(), ...this.state.putWatermark(watermark)])))
      return false;
    for (const changes of followed) changes.committed();
    return true;
  }

  /** Commits those that wait longest, with something else. */
  async #commit(count: number, also: () => readonly Promise<unknown>[]): Promise<boolean> {
    const entries = firstOf(this.#pending, count);
    const write = (slice: typeof entries): readonly Promise<unknown>[] =>
      slice.flatMap(([span, entry]) =>
        this.#unlisted.has(span) ? this.#writeNew(span, entry) : this.#writeEnd(span, entry),
      );
    const failed = await writeInTurns(entries, write, also);
    if (failed !== undefined) {
      this.#onFault("The index of the trace cannot be written", failed.reason);
      return false;
    }
    for (const [span, entry] of entries) {
      if (this.#pending.get(span) === entry) this.#pending.delete(span);
      this.#unlisted.delete(span);
      this.children.committed(entry.parent, span);
    }
    return true;
  }

  #writeNew(span: string, entry: SpanEntry): readonly Promise<boolean>[] {
    // A line that is read once more after a crash may be indexed as running by what was committed before it.
    const ended = entry.end === undefined ? [] : [this.#open.remove(span)];
    const open = entry.outcome === RUNNING ? [this.#open.put(span, true)] : ended;
    const rows = [...putRows(this.#order, entry, span), ...this.children.put(entry.parent, span)];
    return [this.#spans.put(span, stored(entry)), ...open, ...rows];
  }

  /** Of a span that is listed already: only how it ended is new. */
  #writeEnd(span: string, entry: SpanEntry): readonly Promise<boolean>[] {
    return [
      this.#spans.put(span, stored(entry)),
      this.#open.remove(span),
      ...putEndRows(this.#order, entry, span),
    ];
  }

  #removeEntry(span: string, { parent }: SpanEntry): readonly Promise<boolean>[] {
    return [this.#spans.remove(span), this.#open.remove(span), ...this.children.remove(parent, span)];
  }

  /** What LMDB does not show yet, or not as it is now, newest first. */
  #fresh(programs: boolean): readonly SpanRow[] {
    const wanted = [...this.#pending].filter(([, { isProgram }]) => isProgram === programs);
    const rows = wanted.map(([span, { seq }]) => ({ seq, span }));
    return rows.sort((one, other) => other.seq - one.seq);
  }
}
