import type { Database, RootDatabase } from "lmdb";
import type { ExecuteReply } from "../../schemas/generated/types.ts";
import type { Changes } from "../spans/follower.ts";

/** Bounds in characters: all kept replies, a single reply, and replies waiting in memory to be written. */
export type ReplyBounds = { readonly all: number; readonly one: number; readonly waiting: number };

const MI = 1024 * 1024;
export const REPLY_BOUNDS: ReplyBounds = { all: 128 * MI, one: 32 * MI, waiting: 64 * MI };

/** A reply's characters and its time of arrival, in milliseconds since 1970. */
type Size = { readonly size: number; readonly at: number };

/** The newest replies of calls with a key. {@link find} returns undefined for an evicted reply. */
export class KeptReplies {
  /** In order of arrival. */
  readonly #sizes = new Map<string, Size>();
  readonly #waiting = new Map<string, string>();
  readonly #dropped = new Set<string>();
  #texts: Database<string, string> | undefined;
  #stored: Database<Size, string> | undefined;
  readonly #bounds: ReplyBounds;
  #total = 0;
  #waitingTotal = 0;

  constructor(bounds: ReplyBounds) {
    this.#bounds = bounds;
  }

  open(database: RootDatabase): void {
    this.#texts = database.openDB({ name: "idempotent-replies", encoding: "string" });
    this.#stored = database.openDB({ name: "idempotent-reply-sizes" });
    const rows = [...this.#stored.getRange({})].sort((one, other) => one.value.at - other.value.at);
    for (const { key, value } of rows) this.#count(key, value);
  }

  /** Keeps a reply, unless too long (it would evict others) or while the disk accepts no writes. */
  keep(key: string, reply: ExecuteReply): void {
    const text = JSON.stringify(reply);
    const { all, one, waiting } = this.#bounds;
    if (text.length > one || this.#waitingTotal + text.length > waiting) return;
    this.drop(key);
    this.#dropped.delete(key);
    this.#waiting.set(key, text);
    this.#waitingTotal += text.length;
    this.#count(key, { size: text.length, at: Date.now() });
    for (const [oldest] of this.#sizes) {
      if (this.#total <= all) break;
      this.drop(oldest);
    }
  }

  find(key: string): ExecuteReply | undefined {
    if (!this.#sizes.has(key)) return undefined;
    const text = this.#waiting.get(key) ?? this.#texts?.get(key);
    return text === undefined ? undefined : (JSON.parse(text) as ExecuteReply);
  }

  drop(key: string): void {
    const known = this.#sizes.get(key);
    if (known === undefined) return;
    this.#sizes.delete(key);
    this.#total -= known.size;
    this.#stopWaiting(key);
    this.#dropped.add(key);
  }

  changes(): Changes {
    const waiting = [...this.#waiting].map(([key, text]) => [key, text, this.#sizes.get(key)] as const);
    const dropped = [...this.#dropped];
    return {
      write: () =>
        [
          ...dropped.flatMap((key) => [this.#texts?.remove(key), this.#stored?.remove(key)]),
          ...waiting.flatMap(([key, text, size]) => [
            this.#texts?.put(key, text),
            size === undefined ? undefined : this.#stored?.put(key, size),
          ]),
        ].map(async (write) => await write),
      committed: () => {
        for (const key of dropped) this.#dropped.delete(key);
        for (const [key, text] of waiting) if (this.#waiting.get(key) === text) this.#stopWaiting(key);
      },
    };
  }

  #count(key: string, size: Size): void {
    this.#sizes.set(key, size);
    this.#total += size.size;
  }

  #stopWaiting(key: string): void {
    this.#waitingTotal -= this.#waiting.get(key)?.length ?? 0;
    this.#waiting.delete(key);
  }
}
