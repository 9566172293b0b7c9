/**
 * Bytes that come in pieces, in one buffer that doubles when it is full. A client may send them one by one, and each in a
 * buffer or a string of its own takes two hundred times its size.
 */
export class Gathered {
  #buffer = new Uint8Array(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** A view, until more is added. */
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

  /** All of it; nothing is left. */
  take(): Uint8Array {
    const bytes = this.bytes;
    this.#buffer = new Uint8Array(0);
    this.#length = 0;
    return bytes;
  }
}
