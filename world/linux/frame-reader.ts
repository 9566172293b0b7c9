import { FRAME, FRAME_HEADER_SIZE, FRAME_MAX_PAYLOAD } from "../../schemas/generated/frames.ts";

/** Receives decoded frames. Output is passed in slices of the received chunks, without a copy. */
export type FrameSink = {
  readonly onBytes: (type: number, id: number, bytes: Buffer) => void;
  readonly onFrame: (type: number, id: number, payload: Buffer) => void;
};

/**
 * Splits a byte stream into frames. Bytes of STDOUT and STDERR pass through at once; every other payload is collected first.
 * Throws on a frame above the maximum length.
 */
export class FrameReader {
  readonly #sink: FrameSink;
  readonly #header = Buffer.alloc(FRAME_HEADER_SIZE);
  #headerFilled = 0;
  #type = 0;
  #id = 0;
  #missing = 0;
  #parts: Buffer[] = [];

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      at =
        this.#headerFilled < FRAME_HEADER_SIZE ? this.#readHeader(chunk, at) : this.#readPayload(chunk, at);
    }
  }

  #readHeader(chunk: Buffer, at: number): number {
    const end = Math.min(chunk.length, at + FRAME_HEADER_SIZE - this.#headerFilled);
    chunk.copy(this.#header, this.#headerFilled, at, end);
    this.#headerFilled += end - at;
    if (this.#headerFilled < FRAME_HEADER_SIZE) return end;
    this.#missing = this.#header.readUInt32LE(0);
    this.#type = this.#header.readUInt8(4);
    this.#id = this.#header.readUInt32LE(8);
    if (this.#missing > FRAME_MAX_PAYLOAD) throw new RangeError(`Frame of ${this.#missing} bytes from init`);
    if (this.#missing === 0) this.#finish();
    return end;
  }

  #readPayload(chunk: Buffer, at: number): number {
    const end = Math.min(chunk.length, at + this.#missing);
    const slice = chunk.subarray(at, end);
    this.#missing -= slice.length;
    if (isOutput(this.#type)) this.#sink.onBytes(this.#type, this.#id, slice);
    else this.#parts.push(slice);
    if (this.#missing === 0) this.#finish();
    return end;
  }

  #finish(): void {
    const parts = this.#parts;
    this.#headerFilled = 0;
    this.#parts = [];
    if (isOutput(this.#type)) return;
    const payload = parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts);
    this.#sink.onFrame(this.#type, this.#id, payload);
  }
}

function isOutput(type: number): boolean {
  return type === FRAME.STDOUT || type === FRAME.STDERR;
}
