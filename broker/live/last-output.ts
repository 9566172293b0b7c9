/** Bytes kept for a client that attaches later. */
const MOST = 256 * 1024;

type Part = { readonly stream: "stdout" | "stderr"; readonly bytes: Buffer };

/** The last output of a command, in the order of its arrival. */
export class LastOutput {
  readonly #parts: Part[] = [];
  #length = 0;

  /** Copies bytes, and forgets the oldest. */
  push(stream: "stdout" | "stderr", bytes: Uint8Array): void {
    this.#parts.push({ stream, bytes: Buffer.from(bytes.subarray(Math.max(0, bytes.length - MOST))) });
    this.#length += Math.min(bytes.length, MOST);
    for (let first = this.#parts[0]; first !== undefined && this.#length > MOST; first = this.#parts[0]) {
      const over = Math.min(first.bytes.length, this.#length - MOST);
      this.#length -= over;
      if (over === first.bytes.length) this.#parts.shift();
      else this.#parts[0] = { stream: first.stream, bytes: first.bytes.subarray(over) };
    }
  }

  parts(): readonly Part[] {
    return this.#parts;
  }
}
