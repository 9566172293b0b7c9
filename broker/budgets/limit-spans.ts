/**
 * Spans of calls refused by an exhausted budget. Such calls are free for the sender, so a loop of them would fill the disk: some
 * leave a span, and the next span counts the omitted ones.
 */
import type { SpanRecord } from "../spans/trace.ts";
import type { Clock } from "./ledger.ts";

/** A burst of spans, then one per second. */
const BURST = 256;
const REFILL_MS = 1000;

export type LimitSpansOptions = {
  readonly write: (record: SpanRecord) => void;
  readonly onFault: (what: string, error: unknown) => void;
  readonly now?: Clock;
};

type Flow = {
  tokens: number;
  refilledAt: number;
  leftOut: number;
  last: (() => SpanRecord) | undefined;
  timer: NodeJS.Timeout | undefined;
};

export class LimitSpans {
  readonly #write: LimitSpansOptions["write"];
  readonly #onFault: LimitSpansOptions["onFault"];
  readonly #now: Clock;
  readonly #flows = new Map<string, Flow>();

  constructor({ write, onFault, now = Date.now }: LimitSpansOptions) {
    this.#write = write;
    this.#onFault = onFault;
    this.#now = now;
  }

  /**
   * Writes the span unless the source's rate is exceeded; returns whether it was written. The last omitted span is written later.
   */
  record(source: string, make: () => SpanRecord): boolean {
    const flow = this.#flow(source);
    if (flow.tokens >= 1) {
      flow.tokens -= 1;
      this.#write(withCount(make(), flow.leftOut));
      forget(flow);
      return true;
    }
    flow.leftOut += 1;
    flow.last = make;
    flow.timer ??= setTimeout(() => this.#catchUp(flow), REFILL_MS);
    return false;
  }

  /** Writes the omitted counts now, and cancels all timers. */
  end(): void {
    for (const flow of this.#flows.values()) this.#catchUp(flow);
  }

  #flow(source: string): Flow {
    const now = this.#now();
    const flow = this.#flows.get(source) ?? {
      tokens: BURST,
      refilledAt: now,
      leftOut: 0,
      last: undefined,
      timer: undefined,
    };
    this.#flows.set(source, flow);
    const refilled = Math.max(0, Math.floor((now - flow.refilledAt) / REFILL_MS));
    flow.tokens = Math.min(BURST, flow.tokens + refilled);
    flow.refilledAt += refilled * REFILL_MS;
    return flow;
  }

  #catchUp(flow: Flow): void {
    const { last, leftOut } = flow;
    forget(flow);
    if (last === undefined) return;
    try {
      this.#write(withCount(last(), leftOut - 1));
    } catch (error) {
      this.#onFault("Cannot write the span of a used-up budget", error);
    }
  }
}

function forget(flow: Flow): void {
  clearTimeout(flow.timer);
  Object.assign(flow, { leftOut: 0, last: undefined, timer: undefined });
}

function withCount(record: SpanRecord, leftOut: number): SpanRecord {
  return leftOut === 0 ? record : { ...record, left_out: leftOut };
}
