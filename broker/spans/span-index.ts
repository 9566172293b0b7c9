/**
 * LMDB beside the trace: where each span's lines lie, in which order, and the head of the chain.
 * It is an index, never the record: whatever it lacks is read again from the trace. One process writes.
 */
import { type Database, open, type RootDatabase } from "lmdb";
import type { Head } from "./chain.ts";
import type { Changes } from "./follower.ts";
import type { Extent } from "./trace-file.ts";

/** What of a span is indexed. `end` is missing while the command runs. */
export type SpanEntry = {
  readonly agent: string | null;
  readonly session: string | null;
  readonly start: Extent;
  readonly end?: Extent;
};

/** Up to where the trace is indexed, and the chain's head there. */
export type Watermark = { readonly size: number; readonly head: Head };

export type SpanQuery = {
  readonly agent: string | undefined;
  readonly session: string | undefined;
  /** Only spans with a smaller sequence number: where the last page ended. */
  readonly before: number | undefined;
  readonly limit: number;
};

/** A first line that LMDB may not show yet. */
type Recent = {
  readonly seq: number;
  readonly span: string;
  readonly entry: SpanEntry;
  readonly parent: string | null;
  readonly ends: boolean;
};

const MAX_LOST_HEADS = 16;

/** Told of a fault that costs no span: the trace itself is written. */
export type OnFault = (what: string, error: unknown) => void;

/**
 * What is added waits in memory until `flush`, which hands it all to LMDB in one turn of the event loop, as one
 * transaction. A transaction for each command cost the broker's thread a quarter of a millisecond, and its journal
 * commit stalled the next append to the trace: together that doubled the price of a command.
 */
export class SpanIndex {
  readonly root: RootDatabase;
  readonly #spans: Database<SpanEntry, string>;
  readonly #order: Database<string, [scope: string, seq: number]>;
  readonly #children: Database<string, string>;
  readonly #open: Database<true, string>;
  readonly #state: Database<Watermark, string>;
  readonly #lost: Database<readonly string[], string>;
  /** What LMDB does not show yet: entries by span, first lines in their order, and the writes to come. */
  readonly #pending = new Map<string, SpanEntry>();
  readonly #recent: Recent[] = [];
  readonly #ended: string[] = [];
  #flushing = Promise.resolve();
  readonly #onFault: OnFault;

  /** `overlappingSync: false`: with it, a writer that is killed can leave the environment broken. */
  constructor(folder: string, options: { readonly readOnly?: boolean; readonly onFault?: OnFault } = {}) {
    this.#onFault = options.onFault ?? (() => {});
    this.root = open({
      path: folder,
      overlappingSync: false,
      maxDbs: 32,
      readOnly: options.readOnly === true,
    });
    this.#spans = this.root.openDB({ name: "spans" });
    this.#order = this.root.openDB({ name: "order" });
    this.#children = this.root.openDB({ name: "children", dupSort: true, encoding: "ordered-binary" });
    this.#open = this.root.openDB({ name: "open" });
    this.#state = this.root.openDB({ name: "state" });
    this.#lost = this.root.openDB({ name: "lost-heads" });
  }

  /** A new span's first line. `ends` says that no second one will follow. */
  addStart(span: string, entry: SpanEntry, parent: string | null, seq: number, ends: boolean): void {
    this.#pending.set(span, entry);
    this.#recent.push({ seq, span, entry, parent, ends });
  }

  addEnd(span: string, end: Extent): void {
    const entry = this.find(span);
    if (entry !== undefined) this.#pending.set(span, { ...entry, end });
    this.#ended.push(span);
  }

  /**
   * Hands everything added so far to LMDB, with how far the trace is indexed by it and what its followers know there;
   * settles when it is committed. One at a time: what is added meanwhile waits for the next.
   */
  flush(watermark: Watermark, followed: readonly Changes[] = []): Promise<void> {
    this.#flushing = this.#flushing.then(() => this.#write(watermark, followed));
    return this.#flushing;
  }

  watermark(): Watermark | undefined {
    return this.#state.get("watermark");
  }

  /** Heads that the trace had and has no more: somebody cut it or put another one there. Kept for `trace verify`. */
  lostHeads(): readonly string[] {
    return this.#lost.get("heads") ?? [];
  }

  async addLostHead(head: string): Promise<void> {
    await this.#lost.put("heads", [...new Set([...this.lostHeads(), head])].slice(-MAX_LOST_HEADS));
  }

  find(span: string): SpanEntry | undefined {
    return this.#pending.get(span) ?? this.#spans.get(span);
  }

  childrenOf(span: string): readonly string[] {
    const recent = this.#recent.filter(({ parent }) => parent === span).map((row) => row.span);
    return [...new Set([...this.#children.getValues(span), ...recent])];
  }

  /** Spans that were started and not closed, oldest first; only what is committed. */
  stillOpen(): readonly string[] {
    return [...this.#open.getKeys()];
  }

  /** Newest first, at most `limit`, each with its sequence number. */
  list(query: SpanQuery): readonly { readonly seq: number; readonly span: string }[] {
    const before = query.before ?? Number.MAX_SAFE_INTEGER;
    const fresh = this.#recent.filter((row) => row.seq < before && matches(row.entry, query)).reverse();
    const oldest = fresh.at(-1)?.seq ?? before;
    const scope = scopeOf(query);
    const range = this.#order.getRange({
      start: [scope, oldest - 1],
      end: [scope, 0],
      reverse: true,
      limit: query.limit,
    });
    const stored = [...range].map(({ key, value }) => ({ seq: key[1], span: value }));
    return [...fresh, ...stored].slice(0, query.limit);
  }

  /** Forgets all spans, to be filled again from the trace. The watermark stays until then: a start that breaks begins anew. */
  async clear(): Promise<void> {
    await Promise.all(
      [this.#spans, this.#order, this.#children, this.#open].map((part) => part.clearAsync()),
    );
  }

  async close(): Promise<void> {
    await this.root.close();
  }

  /** A commit that fails (a full disk) is tried again with the next flush: nothing is forgotten before it is committed. */
  async #write(watermark: Watermark, followed: readonly Changes[]): Promise<void> {
    const entries = [...this.#pending];
    const rows = [...this.#recent];
    const ended = [...this.#ended];
    const writes = [
      ...entries.map(([span, entry]) => this.#spans.put(span, entry)),
      ...rows.flatMap((row) => this.#writeRow(row)),
      ...ended.map((span) => this.#open.remove(span)),
      ...followed.flatMap((changes) => changes.write()),
      this.#state.put("watermark", watermark),
    ];
    const failed = (await Promise.allSettled(writes)).find((write) => write.status === "rejected");
    if (failed !== undefined) return this.#onFault("The index of the trace cannot be written", failed.reason);
    for (const [span, entry] of entries) if (this.#pending.get(span) === entry) this.#pending.delete(span);
    this.#recent.splice(0, rows.length);
    this.#ended.splice(0, ended.length);
    for (const changes of followed) changes.committed();
  }

  #writeRow({ seq, span, entry, parent, ends }: Recent): readonly Promise<boolean>[] {
    return [
      this.#order.put(["*", seq], span),
      ...(entry.agent === null ? [] : [this.#order.put([`agent ${entry.agent}`, seq], span)]),
      ...(entry.session === null ? [] : [this.#order.put([`session ${entry.session}`, seq], span)]),
      ...(parent === null ? [] : [this.#children.put(parent, span)]),
      ...(ends ? [] : [this.#open.put(span, true)]),
    ];
  }
}

function scopeOf({ agent, session }: SpanQuery): string {
  if (session !== undefined) return `session ${session}`;
  return agent === undefined ? "*" : `agent ${agent}`;
}

function matches(entry: SpanEntry, { agent, session }: SpanQuery): boolean {
  return session === undefined ? agent === undefined || entry.agent === agent : entry.session === session;
}
