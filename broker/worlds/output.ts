import { createHash, type Hash } from "node:crypto";

/** SHA-256 of empty input. */
const EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/** A bounded output stream: keeps the first and the last half of the allowed bytes, counts and hashes all bytes. */
export class BoundedOutput {
  readonly #headSize: number;
  readonly #tailSize: number;
  readonly #head: Buffer[] = [];
  #headFilled = 0;
  #tail: Buffer | undefined;
  #tailAt = 0;
  #tailTotal = 0;
  #total = 0;
  #counted = 0;
  #hash: Hash | undefined;

  /** `limit` in bytes. */
  constructor(limit: number) {
    this.#headSize = Math.ceil(limit / 2);
    this.#tailSize = limit - this.#headSize;
  }

  get total(): number {
    return this.#total + this.#counted;
  }

  get truncated(): boolean {
    return this.#total > this.#headSize + this.#tailSize;
  }

  /** Adds bytes, copying the kept part; the caller may reuse the buffer. */
  push(bytes: Uint8Array): void {
    this.#hash ??= createHash("sha256");
    this.#hash.update(bytes);
    this.#total += bytes.length;
    const first = bytes.subarray(0, this.#headSize - this.#headFilled);
    if (first.length > 0) {
      this.#head.push(Buffer.from(first));
      this.#headFilled += first.length;
    }
    this.#pushTail(bytes.subarray(first.length));
  }

  /** Counts and hashes bytes added to the stream by the caller, without keeping them. */
  count(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#hash ??= createHash("sha256");
    this.#hash.update(bytes);
    this.#counted += bytes.length;
  }

  bytes(): Buffer {
    return Buffer.concat([...this.#head, ...this.#tailParts()]);
  }

  /** Copies the first and last kept bytes, at most `most` of each, without overlap. */
  ends(most: number): { readonly head: Buffer; readonly tail: Buffer } {
    const parts = [...this.#head, ...this.#tailParts()];
    const kept = parts.reduce((sum, { length }) => sum + length, 0);
    const first = Math.min(most, Math.ceil(kept / 2));
    return { head: bytesFrom(parts, first), tail: bytesUpTo(parts, Math.min(most, kept - first)) };
  }

  /** Returns the hex SHA-256 of the whole stream, and ends the hashing. */
  sha256(): string {
    return this.#hash === undefined ? EMPTY_SHA256 : this.#hash.digest("hex");
  }

  /** Writes to the tail, a ring buffer: once full, its oldest byte is at `#tailAt`. */
  #pushTail(bytes: Uint8Array): void {
    if (bytes.length === 0 || this.#tailSize === 0) return;
    this.#tail ??= Buffer.allocUnsafe(this.#tailSize);
    this.#tailTotal += bytes.length;
    const last = bytes.subarray(Math.max(0, bytes.length - this.#tailSize));
    const untilEnd = Math.min(last.length, this.#tailSize - this.#tailAt);
    this.#tail.set(last.subarray(0, untilEnd), this.#tailAt);
    this.#tail.set(last.subarray(untilEnd), 0);
    this.#tailAt = (this.#tailAt + last.length) % this.#tailSize;
  }

  #tailParts(): Buffer[] {
    if (this.#tail === undefined) return [];
    if (this.#tailTotal < this.#tailSize) return [this.#tail.subarray(0, this.#tailAt)];
    return [this.#tail.subarray(this.#tailAt), this.#tail.subarray(0, this.#tailAt)];
  }
}

function bytesFrom(parts: readonly Buffer[], count: number): Buffer {
  const found: Buffer[] = [];
  for (let [at, left] = [0, count]; left > 0 && at < parts.length; at += 1) {
    const part = (parts[at] ?? Buffer.alloc(0)).subarray(0, left);
    found.push(part);
    left -= part.length;
  }
  return Buffer.concat(found);
}

function bytesUpTo(parts: readonly Buffer[], count: number): Buffer {
  const found: Buffer[] = [];
  for (let [at, left] = [parts.length - 1, count]; left > 0 && at >= 0; at -= 1) {
    const part = parts[at] ?? Buffer.alloc(0);
    found.unshift(part.subarray(Math.max(0, part.length - left)));
    left -= Math.min(left, part.length);
  }
  return Buffer.concat(found);
}
