/** A byte stream as a WebSocket of its own: the kernel's buffers hold a fast sender back, and an end is told from a break. */
import { Duplex } from "node:stream";
import type { RawData, WebSocket } from "ws";
import type { WorldSocket } from "../model/network.ts";

/** The text that stands for the end of the sender's bytes; a connection closed without both ends was reset. */
const END = "end";

export class StreamSocket extends Duplex implements WorldSocket {
  override allowHalfOpen = true;
  readonly #socket: WebSocket;
  readonly #open: Promise<void>;
  /** Whether the other end has sent its last byte. */
  #hasEnd = false;
  #idle: NodeJS.Timeout | undefined;

  constructor(socket: WebSocket) {
    super({ allowHalfOpen: true });
    this.#socket = socket;
    this.#open =
      socket.readyState === socket.OPEN
        ? Promise.resolve()
        : new Promise((resolve) => socket.once("open", () => resolve()));
    socket.on("message", (data, isBinary) => this.#take(data, isBinary));
    socket.on("error", (error) => this.destroy(error));
    socket.on("close", () => {
      // The reader may still have bytes to take; the stream destroys itself after the last.
      if (!this.#hasEnd || !this.writableFinished)
        this.destroy(Object.assign(new Error("The connection was reset"), { code: "ECONNRESET" }));
    });
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  /** As a socket's: calls `listener` after `ms` without a byte in either direction. */
  setTimeout(ms: number, listener: () => void): this {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(listener, ms).unref();
    return this;
  }

  /** The other end sees a reset: its bytes are not complete. */
  resetAndDestroy(): this {
    this.#socket.terminate();
    return this.destroy();
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(chunk: Uint8Array, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#idle?.refresh();
    if (chunk.length === 0) return done();
    // A copy: the writer may use the buffer again once the bytes are taken, and masking would change them.
    const bytes = Buffer.from(chunk);
    void this.#open.then(() => this.#socket.send(bytes, done));
  }

  override _final(done: (error?: Error | null) => void): void {
    void this.#open.then(() => this.#socket.send(END, done));
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    clearTimeout(this.#idle);
    if (error === null && this.readableEnded && this.writableFinished) this.#socket.close();
    else this.#socket.terminate();
    done(error);
  }

  #take(data: RawData, isBinary: boolean): void {
    this.#idle?.refresh();
    if (isBinary) {
      if (!this.push(data)) this.#socket.pause();
      return;
    }
    this.#hasEnd = true;
    this.push(null);
  }
}
