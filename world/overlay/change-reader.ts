/**
 * Reads the changes in an upper layer: `substrate-init changes` walks, compares and hashes in its own process, so that large
 * layers never block the broker. Node cannot read xattrs, which mark removed names.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { setImmediate as breathe } from "node:timers/promises";
import { type LayerChange, type LayerEnd, takeRecords } from "./change-records.ts";

/** An upper layer, and the tree below. */
export type Layer = {
  readonly upper: string;
  readonly lower: string;
  /** Which marks the overlay uses: `user.` xattrs (mount option userxattr) or `trusted.`; commands can forge the other kind. */
  readonly userxattr: boolean;
};

/** Idle readers kept for the next layer; each is a sleeping process of one megabyte. */
const MAX_IDLE = 2;

type Reader = {
  readonly child: ChildProcess;
  rest: string;
  onText: (text: string) => void;
  onGone: () => void;
};

/** Thrown when the process ends before its answer. */
class ReaderGone extends Error {
  override readonly name = "ReaderGone";
}

/** A pool of reader processes, one per concurrent read. */
export class ChangeReader {
  readonly #init: string;
  readonly #idle: Reader[] = [];
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
      if (waited === undefined || told || !(error instanceof ReaderGone)) throw error;
      return await this.#readBy(this.#start(), layer, signal, tell);
    }
  }

  /** Ends idle readers; a busy reader ends with its layer. */
  close(): void {
    this.#closed = true;
    for (const { child } of this.#idle.splice(0)) child.stdin?.end();
  }

  async #readBy(
    reader: Reader,
    layer: Layer,
    signal: AbortSignal,
    onChange: (change: LayerChange) => void,
  ): Promise<LayerEnd> {
    const onAbort = (): void => void reader.child.kill("SIGKILL");
    signal.addEventListener("abort", onAbort, { once: true });
    hold(reader.child, true);
    try {
      const end = await exchange(reader, layer, onChange);
      // The abort has killed the reader, even if its answer is complete.
      signal.throwIfAborted();
      this.#keep(reader);
      return end;
    } catch (error) {
      reader.child.kill("SIGKILL");
      signal.throwIfAborted();
      throw error;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  #start(): Reader {
    const child = spawn(this.#init, ["changes"], {
      stdio: ["pipe", "pipe", "ignore"],
      env: {},
      cwd: "/",
      detached: true,
    });
    const reader: Reader = { child, rest: "", onText: () => {}, onGone: () => {} };
    child.stdout?.setEncoding("latin1").on("data", (text: string) => reader.onText(text));
    const gone = (): void => {
      const at = this.#idle.indexOf(reader);
      if (at >= 0) this.#idle.splice(at, 1);
      reader.onGone();
    };
    child.once("error", gone);
    child.once("close", gone);
    child.stdin?.on("error", () => {
      // The process has ended, ignoring: reported by "close".
    });
    hold(child, false);
    return reader;
  }

  #keep(reader: Reader): void {
    hold(reader.child, false);
    reader.onText = () => {};
    reader.onGone = () => {};
    if (this.#closed || this.#idle.length >= MAX_IDLE) reader.child.stdin?.end();
    else if (reader.child.exitCode === null && reader.child.signalCode === null) this.#idle.push(reader);
  }
}

/** Makes a reader keep the broker alive only while in use. */
function hold(child: ChildProcess, holds: boolean): void {
  const handles: readonly (object | null)[] = [child, child.stdin, child.stdout];
  for (const handle of handles) {
    const { ref, unref } = (handle ?? {}) as { ref?: () => void; unref?: () => void };
    (holds ? ref : unref)?.call(handle);
  }
}

/** Sends a question and processes the answer piece by piece; the pipe is paused meanwhile. */
async function exchange(
  reader: Reader,
  layer: Layer,
  onChange: (change: LayerChange) => void,
): Promise<LayerEnd> {
  const pieces: string[] = [];
  let wake: () => void = () => {};
  let gone = reader.child.exitCode !== null || reader.child.signalCode !== null;
  reader.onText = (text) => {
    pieces.push(text);
    wake();
  };
  reader.onGone = () => {
    gone = true;
    wake();
  };
  const { stdout } = reader.child;
  reader.child.stdin?.write(question(layer));
  for (;;) {
    const piece = pieces.shift();
    if (piece === undefined) {
      if (gone) throw new ReaderGone("The reader of changes ended before its answer did");
      await new Promise<void>((resolve) => {
        wake = resolve;
        stdout?.resume();
      });
      continue;
    }
    stdout?.pause();
    const end = takeRecords(reader, piece, onChange);
    if (end !== undefined) {
      stdout?.resume();
      return end;
    }
    await breathe();
  }
}

/** Encodes `MARKS UPPER NUL LOWER NUL` after its length. */
function question({ upper, lower, userxattr }: Layer): Buffer {
  const words = Buffer.from(`${userxattr ? "u" : "t"}${upper}\0${lower}\0`);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(words.length);
  return Buffer.concat([length, words]);
}
