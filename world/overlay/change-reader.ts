/**
 * Reads what an upper layer says that changed: `substrate-init changes` walks, compares and hashes, so that nothing of it
 * holds up the broker, however much there is. Node has no extended attributes, which say what below a folder is gone.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { setImmediate as breathe } from "node:timers/promises";
import { type LayerChange, type LayerEnd, takeRecords } from "./change-records.ts";

/** A layer, and the tree that it lies over. */
export type Layer = {
  readonly upper: string;
  readonly lower: string;
  /** Whose marks the overlay has read (mount option userxattr); a command can set the others as it likes. */
  readonly userxattr: boolean;
};

/** Readers that are kept for the next layer; each is a process of a megabyte that sleeps. */
const MAX_IDLE = 2;

type Reader = {
  readonly child: ChildProcess;
  rest: string;
  onText: (text: string) => void;
  onGone: () => void;
};

/** The process has ended before it had answered. */
class ReaderGone extends Error {
  override readonly name = "ReaderGone";
}

/** Readers, as many at once as layers are read at once. */
export class ChangeReader {
  readonly #init: string;
  readonly #idle: Reader[] = [];
  #closed = false;

  /** @param init the `substrate-init` program. */
  constructor(init: string) {
    this.#init = init;
  }

  /** Has a reader ready. Starting one holds the broker up for some milliseconds. */
  warm(): void {
    if (this.#idle.length === 0 && !this.#closed) this.#idle.push(this.#start());
  }

  /**
   * Calls `onChange` for each change, in the order of the bytes of their paths. Between pieces others get their turn. Throws
   * when the layer cannot be read, and what aborted.
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
      // One that waited may have been killed by whoever may; nothing of the layer was told yet.
      if (waited === undefined || told || !(error instanceof ReaderGone)) throw error;
      return await this.#readBy(this.#start(), layer, signal, tell);
    }
  }

  /** Ends those that wait; one that reads ends with its layer. */
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
      // Whatever it has said by then, it is dying.
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
      // It has ended, which "close" tells, ignoring.
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

/** One that waits must not keep this process alive, and one that is waited for must. */
function hold(child: ChildProcess, holds: boolean): void {
  const handles: readonly (object | null)[] = [child, child.stdin, child.stdout];
  for (const handle of handles) {
    const { ref, unref } = (handle ?? {}) as { ref?: () => void; unref?: () => void };
    (holds ? ref : unref)?.call(handle);
  }
}

/** Asks, and takes pieces of the answer one after the other; the pipe waits meanwhile. */
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

/** `MARKS UPPER NUL LOWER NUL` behind its length. */
function question({ upper, lower, userxattr }: Layer): Buffer {
  const words = Buffer.from(`${userxattr ? "u" : "t"}${upper}\0${lower}\0`);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(words.length);
  return Buffer.concat([length, words]);
}
