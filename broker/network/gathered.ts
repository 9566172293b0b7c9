/**
 * Collects pieces in one buffer, doubled when full. A client may send single bytes, and a separate buffer or string per
 * byte would take two hundred times the memory.
 */
export class Gathered {
  #buffer = new Uint8Array(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** A view of the bytes, valid until the next `add`. */
  get bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#length);
  }

  add(piece: Uint8Array): void {
    const length = this.#length + piece.length;
    if (length > this.#buffer.length) {
      const larger = new Uint8Array(Math.max(length, 2 * this.#buffer.length));
      larger.set(this.bytes);
      this.#buffer = larger;
    }
    this.#buffer.set(piece, this.#length);
    this.#length = length;
  }

  /** Returns all bytes and empties the buffer. */
  take(): Uint8Array {
    const bytes = this.bytes;
    this.#buffer = new Uint8Array(0);
    this.#length = 0;
    return bytes;
  }
}
