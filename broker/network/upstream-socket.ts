/**
 * A connection to the outside that forwards its bytes to the world's socket without copying or allocating. Node reads
 * into a buffer supplied by us (`onread`), and the kernel takes the bytes from there.
 *
 * Relies on Node and libuv: the callback runs for each read, and the function for the next buffer right after; `false`
 * stops reading until `resume`. A write is tried at once, so `writableLength` is 0 when the kernel took all bytes;
 * otherwise libuv uses the buffer until the write's callback.
 */
import { type ConnectOpts, Socket, type SocketConstructorOpts } from "node:net";
import type { WorldSocket } from "../../world/backend.ts";
import { type ReadBuffers, SMALL_BUFFER } from "./read-buffers.ts";

/** A buffer being written and a buffer being read: a stalled reader holds at most both. */
const MAX_UNWRITTEN = 2;

/** libuv reads up to 32 buffers before other events run; 32 MB would delay the broker's commands. */
const MAX_TURN = 4 * 1024 * 1024;

/** A socket for `connect`. Reads nothing before `pour`. */
export class UpstreamSocket extends Socket {
  readonly #intake: Intake;

  constructor(buffers: ReadBuffers) {
    const intake = new Intake(buffers);
    const options: SocketConstructorOpts & ConnectOpts = {
      allowHalfOpen: true,
      onread: {
        buffer: () => intake.next(),
        callback: (count, buffer) => intake.read(count, buffer),
      },
    };
    super(options);
    intake.source = this;
    this.#intake = intake;
    this.pause();
    this.once("close", () => intake.close());
  }

  /** Bytes forwarded so far. */
  get poured(): number {
    return this.#intake.poured;
  }

  /** Starts reading, and writes all bytes into `sink` at the sink's own speed. */
  pour(sink: WorldSocket): void {
    this.#intake.open(sink);
    this.resume();
  }
}

class Intake {
  readonly #buffers: ReadBuffers;
  #buffer: Uint8Array;
  #sink: WorldSocket | undefined;
  /** Buffers whose bytes the sink has not yet taken. */
  #unwritten: Uint8Array[] = [];
  #lastCount = 0;
  #isStopped = false;
  /** Bytes read since other events last ran for certain. */
  #inTurn = 0;
  source: Socket | undefined;
  poured = 0;

  constructor(buffers: ReadBuffers) {
    this.#buffers = buffers;
    this.#buffer = buffers.take("small");
  }

  open(sink: WorldSocket): void {
    this.#sink = sink;
    // After `close`, libuv has released the unwritten buffers.
    sink.once("close", () => this.#release());
  }

  /** Forwards a read; returns whether to go on reading. */
  read(count: number, buffer: Uint8Array): boolean {
    const sink = this.#sink;
    if (sink === undefined) {
      this.source?.destroy(new Error("Cannot read from upstream: no socket takes its bytes yet"));
      return false;
    }
    this.poured += count;
    this.#lastCount = count;
    sink.write(buffer.subarray(0, count), this.#onWritten);
    if (sink.writableLength > 0) this.#unwritten.push(buffer);
    this.#inTurn += count;
    this.#isStopped = this.#unwritten.length >= MAX_UNWRITTEN;
    if (this.#isStopped || this.#inTurn < MAX_TURN) return !this.#isStopped;
    this.#inTurn = 0;
    this.#isStopped = true;
    setImmediate(this.#goOn);
    return false;
  }

  /**
   * Picks the next read's buffer: a large buffer while reads fill small buffers, never a buffer still being written.
   */
  next(): Uint8Array {
    const isBusy = this.#unwritten.includes(this.#buffer);
    if (this.#isFitting() && !isBusy) return this.#buffer;
    if (!isBusy) this.#buffers.giveBack(this.#buffer);
    this.#buffer = this.#buffers.take(this.#lastCount < SMALL_BUFFER ? "small" : "large");
    return this.#buffer;
  }

  /** Call when the source has closed. */
  close(): void {
    this.#buffers.giveBack(this.#buffer);
    this.#buffer = new Uint8Array(0);
    this.source = undefined;
  }

  #isFitting(): boolean {
    const isFilling = this.#lastCount >= SMALL_BUFFER;
    const isLarge = this.#buffer.length > SMALL_BUFFER;
    return isLarge ? isFilling : !isFilling || !this.#buffers.hasLarge;
  }

  readonly #onWritten = (): void => {
    if (this.#unwritten.length > 0 && this.#sink?.writableLength === 0) this.#release();
  };

  #release(): void {
    for (const buffer of this.#unwritten.splice(0)) this.#buffers.giveBack(buffer);
    this.#goOn();
  }

  readonly #goOn = (): void => {
    if (!this.#isStopped || this.#unwritten.length >= MAX_UNWRITTEN) return;
    this.#isStopped = false;
    this.#inTurn = 0;
    this.source?.resume();
  };
}
