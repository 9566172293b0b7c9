/** Outputs of commands, kept in this process so that a model can read on where a reply was cut. Bounded. */

/** Bytes kept of one output: as many of its beginning as of its end. */
const KEPT_EACH = 4 * 1024 * 1024;
const HALF = KEPT_EACH / 2;

/** Bytes of all outputs; the oldest go first. */
const KEPT_ALL = 32 * 1024 * 1024;

/** The output of one command, both streams in the order of their arrival. */
export class Output {
  #head: Buffer[] = [];
  #headLength = 0;
  #tail: Buffer[] = [];
  #tailLength = 0;
  #total = 0;

  get total(): number {
    return this.#total;
  }

  get kept(): number {
    return this.#headLength + this.#tailLength;
  }

  push(bytes: Buffer): void {
    this.#total += bytes.length;
    const room = HALF - this.#headLength;
    const first = bytes.subarray(0, room);
    const rest = bytes.subarray(first.length);
    if (first.length > 0) this.#head.push(Buffer.from(first));
    this.#headLength += first.length;
    if (rest.length === 0) return;
    this.#tail.push(Buffer.from(rest));
    this.#tailLength += rest.length;
    if (this.#tailLength > 2 * HALF) this.#trim();
  }

  /** Ends the output: joins its pieces. */
  finish(): void {
    this.#head = [Buffer.concat(this.#head)];
    this.#trim();
  }

  /**
   * Returns kept bytes from an offset, fewer at the end or before a gap, and no part of a character; `next` is where the kept bytes
   * go on.
   */
  slice(offset: number, length: number): { readonly bytes: Buffer; readonly next: number } {
    const [head, tail] = [Buffer.concat(this.#head), Buffer.concat(this.#tail)];
    const tailFrom = this.#total - tail.length;
    if (offset < head.length) {
      const bytes = whole(head.subarray(offset, offset + length));
      const next = offset + bytes.length;
      return { bytes, next: next === head.length ? Math.max(next, tailFrom) : next };
    }
    const from = Math.max(offset, tailFrom);
    const part = tail.subarray(from - tailFrom, from - tailFrom + length);
    const bytes = from + part.length < this.#total ? whole(part) : part;
    return { bytes, next: from + bytes.length };
  }

  #trim(): void {
    const tail = Buffer.concat(this.#tail);
    const kept = tail.subarray(Math.max(0, tail.length - HALF));
    // A copy: a part would keep the whole alive.
    this.#tail = [Buffer.from(kept)];
    this.#tailLength = kept.length;
  }
}

/** Drops the beginning of a character (UTF-8) that the end cuts. */
function whole(bytes: Buffer): Buffer {
  for (let back = 1; back <= Math.min(3, bytes.length - 1); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) return bytes;
    if (byte < 0xc0) continue;
    const length = byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    return length > back ? bytes.subarray(0, -back) : bytes;
  }
  return bytes;
}

/** Drops the end of a character that the beginning cuts. */
export function fromCharacter(bytes: Buffer): Buffer {
  const first = bytes.subarray(0, 4).findIndex((byte) => (byte & 0xc0) !== 0x80);
  return first <= 0 ? bytes : bytes.subarray(first);
}

/** The outputs that can be read on, by reference. */
export class Outputs {
  readonly #kept = new Map<string, Output>();
  #count = 0;

  /** Keeps a finished output; returns its reference. */
  keep(output: Output): string {
    this.#count += 1;
    const name = `out${this.#count}`;
    this.#kept.set(name, output);
    let all = [...this.#kept.values()].reduce((sum, { kept }) => sum + kept, 0);
    for (const [oldest, { kept }] of this.#kept) {
      if (all <= KEPT_ALL) break;
      this.#kept.delete(oldest);
      all -= kept;
    }
    return name;
  }

  get(name: string): Output | undefined {
    return this.#kept.get(name);
  }
}
