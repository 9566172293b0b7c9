/** A token bucket that many streams share. */
import type { Allowance } from "./allowance.ts";

/** A hello, a request and its headers pass at once, however slow the rate is. */
const LEAST_BURST = 16 * 1024;

/** A tenth of a second: more than a busy event loop is late, so that no rate is lost between two looks at the clock. */
const BURST_PER_RATE = 1 / 10;

/** One take gets a hundredth of a second of the rate at most, and no piece is so small that its write costs more. */
const PIECE_PER_RATE = 1 / 100;
const LEAST_PIECE = 1024;
const MOST_PIECE = 64 * 1024;

type Waiting = { readonly wanted: number; readonly resolve: (granted: number) => void };

/**
 * Lets `bytesPerSecond` through over all streams together, after a first burst of 16 KiB or a tenth of a second,
 * whichever is more. Streams are served in turn, a small piece each, so a greedy one gets no more than another as
 * long as each asks again only after it was served, as a pump does.
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

  /** `bytesPerSecond` at least 1; `now` in milliseconds of a clock that is never set. */
  constructor(bytesPerSecond: number, now: () => number = () => performance.now()) {
    this.#rate = bytesPerSecond;
    this.#burst = Math.max(LEAST_BURST, bytesPerSecond * BURST_PER_RATE);
    this.#piece = Math.min(MOST_PIECE, Math.max(LEAST_PIECE, Math.floor(bytesPerSecond * PIECE_PER_RATE)));
    this.#now = now;
    this.#tokens = this.#burst;
    this.#filledAt = now();
  }

  /** Streams that wait for their turn. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** 1 to `wanted`, and no more than one piece; 0 once the pacer has stopped. */
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

  /** Whoever waits gets 0, as does whoever comes later: cut the streams before, or they take it for a spent budget. */
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

  /** One timer, for the turn of the first who waits. */
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
