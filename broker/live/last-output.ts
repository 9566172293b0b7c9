/** Bytes kept for a client that attaches later. */
const MOST = 256 * 1024;

/** Parts kept: a command that writes single bytes must not leave one for each. */
const MOST_PARTS = 4096;

/** Small writes to the same stream are kept as one part up to this size. */
const JOINED = 4096;

type Part = { readonly stream: "stdout" | "stderr"; readonly bytes: Buffer };

/** The last output of a command, in the order of its arrival. */
export class LastOutput {
  readonly #parts: Part[] = [];
  #length = 0;

  /** Copies bytes, and forgets the oldest. */
  push(stream: "stdout" | "stderr", bytes: Uint8Array): void {
    const last = this.#parts.at(-1);
    if (last?.stream === stream && last.bytes.length + bytes.length <= JOINED)
      this.#parts[this.#parts.length - 1] = { stream, bytes: Buffer.concat([last.bytes, bytes]) };
    else this.#parts.push({ stream, bytes: Buffer.from(bytes.subarray(Math.max(0, bytes.length - MOST))) });
    this.#length += Math.min(bytes.length, MOST);
    if (this.#parts.length > MOST_PARTS) this.#length -= this.#parts.shift()?.bytes.length ?? 0;
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
