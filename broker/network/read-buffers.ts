/** Buffer of a quiet connection; 2,000 take 32 MB. */
export const SMALL_BUFFER = 16 * 1024;

/** Buffer of a download: reading and writing a megabyte at a time doubled the speed over 64 KiB. */
export const LARGE_BUFFER = 1024 * 1024;

/**
 * Read buffers shared by all connections of a broker. At most `most` large buffers are lent at once, so many slow
 * readers hold bounded memory; further downloads use small buffers. `kept` free buffers wait for the next download;
 * more would enlarge the broker's process for good.
 */
export class ReadBuffers {
  readonly #most: number;
  readonly #kept: number;
  readonly #free: Buffer[] = [];
  #lent = 0;

  constructor({ most = 32, kept = 4 }: { readonly most?: number; readonly kept?: number } = {}) {
    this.#most = most;
    this.#kept = kept;
  }

  /** Large buffers in use. */
  get lent(): number {
    return this.#lent;
  }

  get hasLarge(): boolean {
    return this.#lent < this.#most;
  }

  /** Lends a buffer; a small buffer when all large buffers are lent. */
  take(size: "small" | "large"): Buffer {
    if (size === "small" || !this.hasLarge) return Buffer.allocUnsafeSlow(SMALL_BUFFER);
    this.#lent += 1;
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(LARGE_BUFFER);
  }

  /** Call once for each taken buffer, after its last read and write. */
  giveBack(buffer: Uint8Array): void {
    if (buffer.length !== LARGE_BUFFER) return;
    this.#lent -= 1;
    if (this.#free.length < this.#kept) this.#free.push(buffer as Buffer);
  }
}
