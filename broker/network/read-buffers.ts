/** What a connection reads into while it is quiet; 2,000 of them are 32 MB. */
export const SMALL_BUFFER = 16 * 1024;

/** What a download reads into: one read and one write for a megabyte doubled its speed over 64 KiB at a time. */
export const LARGE_BUFFER = 1024 * 1024;

/**
 * The buffers that all connections of a broker read into. At most `most` large ones are lent at once, so that many
 * slow readers hold a bounded amount of memory; further downloads do with small ones. `kept` of them wait for the next
 * download; more would make the broker's process larger for good.
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

  /** Large buffers that are in use. */
  get lent(): number {
    return this.#lent;
  }

  get hasLarge(): boolean {
    return this.#lent < this.#most;
  }

  /** A large one may turn out small when all are lent. */
  take(size: "small" | "large"): Buffer {
    if (size === "small" || !this.hasLarge) return Buffer.allocUnsafeSlow(SMALL_BUFFER);
    this.#lent += 1;
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(LARGE_BUFFER);
  }

  /** Once for each buffer taken, when nothing reads from it or writes to it any more. */
  giveBack(buffer: Uint8Array): void {
    if (buffer.length !== LARGE_BUFFER) return;
    this.#lent -= 1;
    if (this.#free.length < this.#kept) this.#free.push(buffer as Buffer);
  }
}
