/**
 * A connection to the outside whose bytes go to the world's socket without being copied or allocated on the way. Node
 * reads them straight into a buffer of ours (`onread`), and the kernel takes them out of it.
 *
 * What Node and libuv do, and this rests on: the callback runs for each read, and the function that names the next
 * buffer right after it; `false` stops the reading until `resume`. A write is tried at once, so that `writableLength`
 * is 0 when the kernel took it all; otherwise libuv goes on reading from the buffer until the write's callback.
 */
import { type ConnectOpts, Socket, type SocketConstructorOpts } from "node:net";
import { type ReadBuffers, SMALL_BUFFER } from "./read-buffers.ts";

/** One that is being written and one that is being read: a reader that stops holds no more than both. */
const MAX_UNWRITTEN = 2;

/** libuv reads up to 32 buffers before anything else has its turn; 32 MB would keep the broker's commands waiting. */
const MAX_TURN = 4 * 1024 * 1024;

/** To be dialled with `connect`. It reads nothing before `pour`. */
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

  /** Bytes that have been passed on. */
  get poured(): number {
    return this.#intake.poured;
  }

  /** From now on what is read goes into `sink`, as fast as that takes it. */
  pour(sink: Socket): void {
    this.#intake.open(sink);
    this.resume();
  }
}

class Intake {
  readonly #buffers: ReadBuffers;
  #buffer: Uint8Array;
  #sink: Socket | undefined;
  /** Their bytes are still on their way into the sink. */
  #unwritten: Uint8Array[] = [];
  #lastCount = 0;
  #isStopped = false;
  /** Bytes since the others had their turn for certain. */
  #inTurn = 0;
  source: Socket | undefined;
  poured = 0;

  constructor(buffers: ReadBuffers) {
    this.#buffers = buffers;
    this.#buffer = buffers.take("small");
  }

  open(sink: Socket): void {
    this.#sink = sink;
    // After it libuv has let go of what could not be written.
    sink.once("close", () => this.#release());
  }

  /** Whether to go on reading. */
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

  /** The buffer of the next read: large while reads fill small ones, never one that is still being written from. */
  next(): Uint8Array {
    const isBusy = this.#unwritten.includes(this.#buffer);
    if (this.#isFitting() && !isBusy) return this.#buffer;
    if (!isBusy) this.#buffers.giveBack(this.#buffer);
    this.#buffer = this.#buffers.take(this.#lastCount < SMALL_BUFFER ? "small" : "large");
    return this.#buffer;
  }

  /** The source reads no more. */
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
