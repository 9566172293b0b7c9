import type { SpanRecord } from "../spans/trace.ts";

/** Programs behind shims whose end was not reported. One that never is, is closed as lost by the next broker. */
export type ShimRun = {
  readonly started: SpanRecord;
  /** Milliseconds since then. */
  readonly duration: () => number;
};

/** Beyond it the oldest can no longer be closed by a report: each is a kilobyte. */
const MOST_OPEN = 10_000;

export class ShimRuns {
  readonly #open = new Map<string, ShimRun>();

  began(started: SpanRecord): void {
    const [oldest] = this.#open.size < MOST_OPEN ? [] : this.#open.keys();
    if (oldest !== undefined) this.#open.delete(oldest);
    const since = performance.now();
    const duration = (): number => Math.round((performance.now() - since) * 1000) / 1000;
    this.#open.set(started.span_id, { started, duration });
  }

  /** Once, and for the agent whose it is alone. */
  take(span: string, agent: string): ShimRun | undefined {
    const run = this.#open.get(span);
    if (run?.started.agent_id !== agent) return undefined;
    this.#open.delete(span);
    return run;
  }
}
