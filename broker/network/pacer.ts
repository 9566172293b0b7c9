/** A token bucket shared by many streams. */
import type { Allowance } from "./allowance.ts";

/** Lets a ClientHello or a request with headers pass at once, at any rate. */
const LEAST_BURST = 16 * 1024;

/** A tenth of a second: longer than a busy event loop delays a timer, so no tokens are lost between two refills. */
const BURST_PER_RATE = 1 / 10;

/** A take gets at most a hundredth of a second of the rate, but never so few bytes that the write costs more. */
const PIECE_PER_RATE = 1 / 100;
const LEAST_PIECE = 1024;
const MOST_PIECE = 64 * 1024;

type Waiting = { readonly wanted: number; readonly resolve: (granted: number) => void };

/**
 * Limits all streams together to `bytesPerSecond`, after an initial burst of 16 KiB or a tenth of a second, whichever
 * is more. Streams are served round-robin in small pieces, so a greedy stream gets no more than another, provided each
 * asks again only after being served, as a pump does.
 */
export class Pacer implements Allowance {
  readonly #rate: number;
  readonly #burst: number;
  readonly #piece: number;
  readonly #now: () => number;
  readonly #waiting: Waiting[] = [];
  #tokens: number;
  #filledAt: number;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  /** `bytesPerSecond` is at least 1; `now` is a monotonic clock in milliseconds. */
  constructor(bytesPerSecond: number, now: () => number = () => performance.now()) {
    this.#rate = bytesPerSecond;
    this.#burst = Math.max(LEAST_BURST, bytesPerSecond * BURST_PER_RATE);
    this.#piece = Math.min(MOST_PIECE, Math.max(LEAST_PIECE, Math.floor(bytesPerSecond * PIECE_PER_RATE)));
    this.#now = now;
    this.#tokens = this.#burst;
    this.#filledAt = now();
  }

  /** Number of waiting streams. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Grants 1 to `wanted` bytes, at most a piece; 0 once the pacer has stopped. */
  take(wanted: number): number | Promise<number> {
    if (this.#isStopped) return 0;
    this.#fill();
    const size = Math.min(wanted, this.#piece);
    if (this.#waiting.length === 0 && this.#tokens >= size) return this.#spend(size);
    const turn = new Promise<number>((resolve) => this.#waiting.push({ wanted: size, resolve }));
    this.#arm();
    return turn;
  }

  giveBack(bytes: number): void {
    if (bytes === 0) return;
    this.#tokens = Math.min(this.#burst, this.#tokens + bytes);
    this.#arm();
  }

  /** Grants 0 to all present and later takers. Cut the streams first: a stream takes 0 for a used-up budget. */
  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const { resolve } of this.#waiting.splice(0)) resolve(0);
  }

  #fill(): void {
    const now = this.#now();
    const earned = (Math.max(0, now - this.#filledAt) / 1000) * this.#rate;
    this.#tokens = Math.min(this.#burst, this.#tokens + earned);
    this.#filledAt = now;
  }

  #spend(bytes: number): number {
    this.#tokens -= bytes;
    return bytes;
  }

  /** Sets the single timer, for the first waiting stream. */
  #arm(): void {
    const [first] = this.#waiting;
    if (first === undefined || this.#timer !== undefined) return;
    const missing = Math.max(0, first.wanted - this.#tokens);
    this.#timer = setTimeout(() => this.#serve(), Math.ceil((missing / this.#rate) * 1000));
  }

  #serve(): void {
    this.#timer = undefined;
    this.#fill();
    for (
      let next = this.#waiting[0];
      next !== undefined && this.#tokens >= next.wanted;
      next = this.#waiting[0]
    ) {
      this.#waiting.shift();
      next.resolve(this.#spend(next.wanted));
    }
    this.#arm();
  }
}
