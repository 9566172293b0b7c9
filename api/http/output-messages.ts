/** First byte of a message: the command's stream. */
export type OutputKind = 1 | 2;

/** Most bytes of one message, its first byte included; a longer output is several messages. */
const MESSAGE = 128 * 1024;

/** Buffers kept for the next message, of all connections. */
const MOST_SPARE = 16;

const spare: Buffer[] = [];

/**
 * Joins what a command wrote during one turn of the event loop in one message of each stream: the channel of a world cuts output
 * anywhere, and each message costs a system call here and one at its reader.
 */
export class OutputMessages {
  readonly #send: (message: Buffer, sent: () => void) => void;
  #buffer: Buffer | undefined;
  #length = 0;
  #taken: (() => void)[] = [];

  /** @param send sends a message, and calls `sent` once the message's bytes are no longer used, also on a broken connection. */
  constructor(send: (message: Buffer, sent: () => void) => void) {
    this.#send = send;
  }

  /** Copies output; `taken` is called after its message was sent. */
  add(kind: OutputKind, bytes: Uint8Array, taken: () => void): void {
    if (this.#buffer !== undefined && this.#buffer[0] !== kind) this.flush();
    for (let at = 0; at < bytes.length; ) {
      const buffer = this.#buffer ?? this.#begin(kind);
      const part = bytes.subarray(at, at + MESSAGE - this.#length);
      buffer.set(part, this.#length);
      this.#length += part.length;
      at += part.length;
      if (at === bytes.length) this.#taken.push(taken);
      if (this.#length === MESSAGE) this.flush();
    }
  }

  /** Sends what has been added: before any other message, so that the order of a stream is kept. */
  flush(): void {
    const [buffer, length, taken] = [this.#buffer, this.#length, this.#taken];
    if (buffer === undefined) return;
    this.#buffer = undefined;
    this.#taken = [];
    this.#send(buffer.subarray(0, length), () => {
      if (spare.length < MOST_SPARE) spare.push(buffer);
      for (const tell of taken) tell();
    });
  }

  #begin(kind: OutputKind): Buffer {
    const buffer = spare.pop() ?? Buffer.allocUnsafeSlow(MESSAGE);
    buffer[0] = kind;
    this.#buffer = buffer;
    this.#length = 1;
    process.nextTick(() => this.flush());
    return buffer;
  }
}
