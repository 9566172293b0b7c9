import { Transform, type TransformCallback } from "node:stream";

const LINE_FEED = 10;

/**
 * Passes input on by whole lines, one message each: the SDK copies all of an unfinished message again with every part of it that arrives,
 * which for tens of megabytes takes minutes. A line of more than `most` bytes is passed on unfinished, and the SDK refuses it.
 */
export class WholeLines extends Transform {
  readonly #most: number;
  #parts: Buffer[] = [];
  #length = 0;

  constructor(most: number) {
    super();
    this.#most = most;
  }

  override _transform(part: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    // What is held is the SDK's own limit too, whether or not a line ends in this part.
    const isTooLong = this.#length + part.length > this.#most;
    const end = isTooLong ? part.length : part.lastIndexOf(LINE_FEED) + 1;
    this.#keep(part.subarray(0, end));
    if (end > 0) this.push(this.#take());
    this.#keep(part.subarray(end));
    done();
  }

  override _flush(done: TransformCallback): void {
    this.push(this.#take());
    done();
  }

  #keep(part: Buffer): void {
    if (part.length === 0) return;
    this.#parts.push(part);
    this.#length += part.length;
  }

  #take(): Buffer {
    const all = Buffer.concat(this.#parts);
    this.#parts = [];
    this.#length = 0;
    return all;
  }
}
