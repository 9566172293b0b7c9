import type { WorldViolation } from "../../world/backend.ts";
import type { SpanRecord } from "../spans/trace.ts";

/** Bytes sent by the world, and bytes received. */
export type Traffic = { readonly egress: number; readonly ingress: number };

/** Most subjects kept for a command's reply; the trace has every recorded refusal. */
const MAX_SUBJECTS = 1000;

/** One command's share of its world's network. */
export class CommandNetwork {
  /** The command's `command_start` line. */
  readonly started: SpanRecord;
  readonly #onViolation: (violation: WorldViolation) => void;
  readonly #open = new Set<() => Traffic>();
  /** Sum over ended connections: a background process can make any number of connections. */
  #ended: Traffic = { egress: 0, ingress: 0 };
  readonly #scopes = new Set<string>();
  readonly #refused = new Map<string, string>();
  /** Why allowed connections failed, by target. */
  readonly #failed = new Map<string, string>();
  /** Refusals that an enforcing policy would have made, by host. */
  readonly #observed = new Map<string, string>();
  /** Pending owner lookups of connections. */
  readonly #asking = new Set<Promise<unknown>>();

  constructor(started: SpanRecord, onViolation: (violation: WorldViolation) => void) {
    this.started = started;
    this.#onViolation = onViolation;
  }

  /**
   * Adds a connection. `traffic` returns the bytes so far. The caller calls the returned function when the connection
   * has ended.
   */
  add(scope: string, traffic: () => Traffic): () => void {
    this.#open.add(traffic);
    this.#scopes.add(scope);
    return () => {
      if (this.#open.delete(traffic)) this.#ended = sumOf([this.#ended, traffic()]);
    };
  }

  /** Records a refusal, once per subject; beyond `MAX_SUBJECTS` subjects, each time. */
  refuse(violation: WorldViolation): void {
    if (this.#refused.has(violation.subject)) return;
    if (this.#refused.size < MAX_SUBJECTS) this.#refused.set(violation.subject, violation.message);
    this.#onViolation(violation);
  }

  /** Notes why an allowed connection failed: the program sees only a reset. */
  fail(subject: string, why: string): void {
    if (this.#failed.size < MAX_SUBJECTS) this.#failed.set(subject, why);
  }

  /** Notes a refusal that an observing policy did not make. Kept once per host: the lookup precedes the connection. */
  observe(host: string, message: string): void {
    if (!this.#observed.has(host) && this.#observed.size < MAX_SUBJECTS) this.#observed.set(host, message);
  }

  /** Registers a pending owner lookup of a connection that may be this command's. */
  expect(answer: Promise<unknown>): void {
    this.#asking.add(answer);
    void answer.finally(() => this.#asking.delete(answer));
  }

  /** Settles when all pending owner lookups are done. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#asking);
  }

  /** Traffic up to now. A background connection goes on and gets a separate line at its end. */
  get traffic(): Traffic {
    return sumOf([this.#ended, ...[...this.#open].map((traffic) => traffic())]);
  }

  /** Each connection as `net:name:port`. */
  get scopes(): readonly string[] {
    return [...this.#scopes].sort();
  }

  /** A sentence for each failed connection. */
  get failed(): readonly string[] {
    return [...this.#failed].map(([subject, why]) => `The connection to ${subject} failed: ${why}`);
  }

  /** A sentence for each refusal that an enforcing policy would have made. */
  get observed(): readonly string[] {
    return [...this.#observed.values()];
  }

  /** A sentence for each refusal. */
  get refused(): readonly string[] {
    return [...this.#refused.values()];
  }
}

function sumOf(all: readonly Traffic[]): Traffic {
  const sum = (direction: keyof Traffic): number => all.reduce((total, each) => total + each[direction], 0);
  return { egress: sum("egress"), ingress: sum("ingress") };
}
