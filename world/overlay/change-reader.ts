/**
 * Reads the changes in an upper layer: `substrate-init changes` walks, compares and hashes in its own process, so that large
 * layers never block the broker. Node cannot read xattrs, which mark removed names.
 */
import { setImmediate as breathe } from "node:timers/promises";
import { errnoName } from "../model/errno.ts";
import { bytesOf, shownPath } from "./names.ts";
import { fieldsOf, NativeSession, SessionEnded } from "./native-session.ts";
import { FLAG, modeIn, ROW, type Row, rowsOf } from "./rows.ts";
import { type ChangeKind, changeKind } from "./tree-hash.ts";

/** An upper layer, and the tree below. */
export type Layer = {
  readonly upper: string;
  readonly lower: string;
  /** Which marks the overlay uses: `user.` xattrs (mount option userxattr) or `trusted.`; commands can forge the other kind. */
  readonly userxattr: boolean;
};

export type LayerChange = {
  /** How the path differs from the lower tree; `unread`: could not be read. */
  readonly kind: ChangeKind | "unread";
  /** Relative, one letter per byte (names.ts). */
  readonly path: string;
  /** `st_mode` of the upper entry; 0: missing. */
  readonly after: number;
};

export type LayerEnd = {
  /** By the rules of tree-hash.ts; null if nothing changed, or if part of the changes could not be read. */
  readonly hash: string | null;
  /** The reader's bound of changes was reached. */
  readonly full: boolean;
};

/** Idle readers kept for the next layer; each is a sleeping process of one megabyte. */
const MAX_IDLE = 2;

/** A pool of reader processes, one per concurrent read. */
export class ChangeReader {
  readonly #init: string;
  readonly #idle: NativeSession[] = [];
  #closed = false;

  /** @param init the `substrate-init` program. */
  constructor(init: string) {
    this.#init = init;
  }

  /** Pre-warms a reader: starting a process blocks the broker for some milliseconds. */
  warm(): void {
    if (this.#idle.length === 0 && !this.#closed) this.#idle.push(this.#start());
  }

  /**
   * Calls `onChange` for each change, ordered by path bytes; yields to the event loop between pieces. Throws when the layer
   * cannot be read, and the signal's reason when aborted.
   */
  async read(layer: Layer, signal: AbortSignal, onChange: (change: LayerChange) => void): Promise<LayerEnd> {
    signal.throwIfAborted();
    let told = false;
    const tell = (change: LayerChange): void => {
      told = true;
      onChange(change);
    };
    const waited = this.#idle.pop();
    try {
      return await this.#readBy(waited ?? this.#start(), layer, signal, tell);
    } catch (error) {
      // An idle reader may have been killed meanwhile; retry, as no change was passed on yet.
      if (waited === undefined || told || !(error instanceof SessionEnded)) throw error;
      return await this.#readBy(this.#start(), layer, signal, tell);
    }
  }

  /** Ends idle readers; a busy reader ends with its layer. */
  close(): void {
    this.#closed = true;
    for (const reader of this.#idle.splice(0)) reader.end();
  }

  async #readBy(
    reader: NativeSession,
    layer: Layer,
    signal: AbortSignal,
    onChange: (change: LayerChange) => void,
  ): Promise<LayerEnd> {
    const onAbort = (): void => reader.kill();
    signal.addEventListener("abort", onAbort, { once: true });
    reader.hold(true);
    try {
      const end = await listing(reader, layer, onChange);
      // The abort has killed the reader, even if its answer is complete.
      signal.throwIfAborted();
      this.#keep(reader);
      return end;
    } catch (error) {
      reader.kill();
      signal.throwIfAborted();
      throw error;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  #start(): NativeSession {
    const reader = new NativeSession(this.#init, "changes");
    void reader.ended.then(() => {
      const at = this.#idle.indexOf(reader);
      if (at >= 0) this.#idle.splice(at, 1);
    });
    reader.hold(false);
    return reader;
  }

  #keep(reader: NativeSession): void {
    reader.hold(false);
    if (this.#closed || this.#idle.length >= MAX_IDLE) reader.end();
    else if (!reader.isOver) this.#idle.push(reader);
  }
}

async function listing(
  reader: NativeSession,
  { upper, lower, userxattr }: Layer,
  onChange: (change: LayerChange) => void,
): Promise<LayerEnd> {
  reader.send(["list", userxattr ? "user" : "trusted", bytesOf(upper), bytesOf(lower)]);
  for (;;) {
    const { word, rest } = await reader.next();
    const fields = fieldsOf(rest);
    const [first = "", second = ""] = fields;
    if (word === "end") return { hash: first === "" ? null : `sha256:${first}`, full: second === "full" };
    if (word !== "rows") throw new Error(`Cannot read '${shownPath(first)}': ${errnoName(Number(second))}`);
    for (const row of rowsOf(fields)) onChange(changeOf(row));
    await breathe();
  }
}

/** The reader sends only changed rows. */
function changeOf({ type, path, flags, above, below }: Row): LayerChange {
  const [before, after] = [modeIn(below), modeIn(above)];
  const kind =
    type === ROW.unread
      ? "unread"
      : (changeKind(before, after, () => !flags.includes(FLAG.content)) ??
        (flags.includes(FLAG.accessList) || flags.includes(FLAG.extended) ? "mod" : undefined));
  if (kind === undefined)
    throw new Error(`The reader of changes sent '${shownPath(path)}', which is unchanged`);
  return { kind, path, after: after ?? 0 };
}
