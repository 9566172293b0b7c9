/**
 * LMDB beside the trace: where each span's lines lie, in which order, and the head of the chain.
 * It is an index, never the record: whatever it lacks is read again from the trace. One process writes.
 */
import { type Database, open, type RootDatabase } from "lmdb";
import { refuseDamaged } from "./database-file.ts";
import type { Changes } from "./follower.ts";
import { IndexState, type Watermark } from "./index-state.ts";
import { endedEntry, entryOf, read, type SpanEntry, stored, type StoredEntry } from "./span-entry.ts";
import {
  endScopes,
  type Order,
  page,
  RUNNING,
  runningRows,
  scopesOf,
  type SpanQuery,
  type SpanRow,
  type SpanRows,
} from "./span-order.ts";
import type { Extent } from "./trace-log.ts";
import type { SpanRecord } from "./trace.ts";
import { isOpening } from "./two-lines.ts";

/** Told of a fault that costs no span: the trace itself is written. */
export type OnFault = (what: string, error: unknown) => void;

/** A line of the trace and where it lies. */
export type Placed = { readonly line: SpanRecord & { readonly seq: number }; readonly extent: Extent };

/**
 * What is added waits in memory until `flush`, which hands it all to LMDB in one turn of the event loop, as one
 * transaction. A transaction for each command cost the broker's thread a quarter of a millisecond, and its journal
 * commit stalled the next append to the trace: together that doubled the price of a command.
 */
export class SpanIndex {
  readonly root: RootDatabase;
  readonly state: IndexState;
  readonly #spans: Database<StoredEntry, string>;
  readonly #order: Order;
  readonly #children: Database<string, string>;
  readonly #open: Database<true, string>;
  /** What LMDB does not show yet: entries by span, and first lines in their order. */
  readonly #pending = new Map<string, SpanEntry>();
  readonly #recent: SpanRow[] = [];
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
    this.#spans = this.root.openDB({ name: "spans" });
    this.#order = this.root.openDB({ name: "order" });
    this.#children = this.root.openDB({ name: "children", dupSort: true, encoding: "ordered-binary" });
    this.#open = this.root.openDB({ name: "open" });
  }

  /** A new span's first line. `ends` says that no second one will follow. */
  addStart(record: SpanRecord, seq: number, start: Extent, ends: boolean): void {
    this.#pending.set(record.span_id, entryOf(record, seq, start, ends));
    this.#recent.push({ seq, span: record.span_id });
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
    const pending = this.#pending.get(span);
    if (pending !== undefined) return pending;
    const row = this.#spans.get(span);
    return row === undefined ? undefined : read(row);
  }

  childrenOf(span: string): readonly string[] {
    const recent = this.#recent.filter((row) => this.#pending.get(row.span)?.parent === span);
    return [...new Set([...this.#children.getValues(span), ...recent.map((row) => row.span)])];
  }

  /** Spans that were started and not closed, oldest first; only what is committed. */
  stillOpen(): readonly string[] {
    return [...this.#open.getKeys()];
  }

  list(query: SpanQuery): SpanRows {
    const find = (span: string): SpanEntry | undefined => this.find(span);
    if (query.outcome !== RUNNING) return page(this.#order, query, this.#fresh(), find);
    const open = new Set([...this.stillOpen(), ...this.#recent.map(({ span }) => span)]);
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
      if (known !== undefined && known.seq !== entry.seq) writes.push(...this.#removeRows(known));
    }
    for (const [span, entry] of changed) {
      writes.push(...this.#writeNew(span, entry));
    }
    return Promise.all(writes);
  }

  /**
   * Forgets the spans that were listed by lines up to a number, at most `limit` of them; settles with how many there were.
   * A span whose last line stays is listed by that one from now on: `seqOf` says its number.
   */
  async removeUpTo(
    last: number,
    limit: number,
    stays: (extent: Extent) => number | undefined,
  ): Promise<number> {
    const rows = [...this.#order.getRange({ start: ["*", 0], end: ["*", last + 1], limit })];
    const writes: Promise<unknown>[] = [];
    for (const { key, value: span } of rows) {
      const entry = this.find(span);
      writes.push(this.#order.remove(key));
      if (entry === undefined || entry.seq !== key[1]) continue;
      writes.push(...this.#removeRows(entry));
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
    await Promise.all(
      [this.#spans, this.#order, this.#children, this.#open].map((part) => part.clearAsync()),
    );
  }

  close(): Promise<void> {
    return this.root.close();
  }

  /** A commit that fails (a full disk) is tried again with the next flush: nothing is forgotten before it is committed. */
  async #write(watermark: Watermark, followed: readonly Changes[]): Promise<boolean> {
    const entries = [...this.#pending];
    const rows = [...this.#recent];
    const fresh = new Set(rows.map(({ span }) => span));
    const writes = [
      ...entries.flatMap(([span, entry]) =>
        fresh.has(span) ? this.#writeNew(span, entry) : this.#writeEnd(span, entry),
      ),
      ...followed.flatMap((changes) => changes.write()),
      ...this.state.putWatermark(watermark),
    ];
    const failed = (await Promise.allSettled(writes)).find((write) => write.status === "rejected");
    if (failed !== undefined) {
      this.#onFault("The index of the trace cannot be written", failed.reason);
      return false;
    }
    for (const [span, entry] of entries) if (this.#pending.get(span) === entry) this.#pending.delete(span);
    this.#recent.splice(0, rows.length);
    for (const changes of followed) changes.committed();
    return true;
  }

  #writeNew(span: string, entry: SpanEntry): readonly Promise<boolean>[] {
    // A line that is read once more after a crash may be indexed as running by what was committed before it.
    const ended = entry.end === undefined ? [] : [this.#open.remove(span)];
    const open = entry.outcome === RUNNING ? [this.#open.put(span, true)] : ended;
    return [this.#spans.put(span, stored(entry)), ...open, ...this.#writeRows(span, entry)];
  }

  /** Of a span that is listed already: only how it ended is new. */
  #writeEnd(span: string, entry: SpanEntry): readonly Promise<boolean>[] {
    return [
      this.#spans.put(span, stored(entry)),
      this.#open.remove(span),
      ...endScopes(entry).map((scope) => this.#order.put([scope, entry.seq], span)),
    ];
  }

  #writeRows(span: string, entry: SpanEntry): readonly Promise<boolean>[] {
    const children = entry.parent === null ? [] : [this.#children.put(entry.parent, span)];
    return [...scopesOf(entry).map((scope) => this.#order.put([scope, entry.seq], span)), ...children];
  }

  #removeEntry(span: string, { parent }: SpanEntry): readonly Promise<boolean>[] {
    const child = parent === null ? [] : [this.#children.remove(parent, span)];
    return [this.#spans.remove(span), this.#open.remove(span), ...child];
  }

  #removeRows(entry: SpanEntry): readonly Promise<boolean>[] {
    return scopesOf(entry).map((scope) => this.#order.remove([scope, entry.seq]));
  }

  /** What LMDB does not show yet, or not as it is now, newest first. */
  #fresh(): readonly SpanRow[] {
    const rows = [...this.#pending].map(([span, { seq }]) => ({ seq, span }));
    return rows.sort((one, other) => other.seq - one.seq);
  }
}

/** What is known of a span with a line more; undefined when the line adds nothing. */
function olderEntry(
  known: SpanEntry | undefined,
  line: Placed["line"],
  extent: Extent,
): SpanEntry | undefined {
  const ends = !isOpening(line);
  if (known === undefined) return entryOf(line, line.seq, extent, ends);
  if (known.seq < line.seq)
    return known.end === undefined && ends ? endedEntry(known, line, extent) : undefined;
  if (known.seq === line.seq) return undefined;
  const ran = Math.max(0, known.at - Date.parse(line.ts));
  return { ...known, seq: line.seq, ran, start: extent, end: known.end ?? known.start };
}
