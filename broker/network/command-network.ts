import type { WorldViolation } from "../../world/backend.ts";
import type { SpanRecord } from "../spans/trace.ts";

/** Bytes that left the world, and that came. */
export type Traffic = { readonly egress: number; readonly ingress: number };

/** What of a command's refusals is kept for its reply; the trace has all that have lines. */
const MAX_SUBJECTS = 1000;

/** One command's part of a world's network. */
export class CommandNetwork {
  /** The command's own line. */
  readonly started: SpanRecord;
  readonly #onViolation: (violation: WorldViolation) => void;
  readonly #open = new Set<() => Traffic>();
  /** Of connections that have ended: a process that is kept makes them without end. */
  #ended: Traffic = { egress: 0, ingress: 0 };
  readonly #scopes = new Set<string>();
  readonly #refused = new Map<string, string>();
  /** By where to, why nothing was reached that is allowed. */
  readonly #failed = new Map<string, string>();
  /** By host, what an enforcing policy would have refused. */
  readonly #observed = new Map<string, string>();
  /** Connections of which it is being asked whose they are. */
  readonly #asking = new Set<Promise<unknown>>();

  constructor(started: SpanRecord, onViolation: (violation: WorldViolation) => void) {
    this.started = started;
    this.#onViolation = onViolation;
  }

  /** `traffic`: what it has carried by now, whenever it is asked. Whoever calls this calls what it returns, when it has ended. */
  add(scope: string, traffic: () => Traffic): () => void {
    this.#open.add(traffic);
    this.#scopes.add(scope);
    return () => {
      if (this.#open.delete(traffic)) this.#ended = sumOf([this.#ended, traffic()]);
    };
  }

  /** Records it, once for each thing that is refused; those that are too many to be known again, each time. */
  refuse(violation: WorldViolation): void {
    if (this.#refused.has(violation.subject)) return;
    if (this.#refused.size < MAX_SUBJECTS) this.#refused.set(violation.subject, violation.message);
    this.#onViolation(violation);
  }

  /** An allowed connection came to nothing: the program sees a reset, and the reply can say why. */
  fail(subject: string, why: string): void {
    if (this.#failed.size < MAX_SUBJECTS) this.#failed.set(subject, why);
  }

  /** Nothing was refused, because the policy only observes; once for each host, whose lookup comes first. */
  observe(host: string, message: string): void {
    if (!this.#observed.has(host) && this.#observed.size < MAX_SUBJECTS) this.#observed.set(host, message);
  }

  /** A connection may turn out to be this command's. */
  expect(answer: Promise<unknown>): void {
    this.#asking.add(answer);
    void answer.finally(() => this.#asking.delete(answer));
  }

  /** Settles when it is known of every connection made so far whose it is. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#asking);
  }

  /** By now; a connection that something in the background keeps goes on, and has a line of its own when it ends. */
  get traffic(): Traffic {
    return sumOf([this.#ended, ...[...this.#open].map((traffic) => traffic())]);
  }

  /** `net:name:port` of each connection that was made. */
  get scopes(): readonly string[] {
    return [...this.#scopes].sort();
  }

  /** What was allowed and not reached, each with its sentence. */
  get failed(): readonly string[] {
    return [...this.#failed].map(([subject, why]) => `The connection to ${subject} failed: ${why}`);
  }

  /** What an enforcing policy would have refused, each with its sentence. */
  get observed(): readonly string[] {
    return [...this.#observed.values()];
  }

  /** What was refused, each with its sentence. */
  get refused(): readonly string[] {
    return [...this.#refused.values()];
  }
}

function sumOf(all: readonly Traffic[]): Traffic {
  const sum = (direction: keyof Traffic): number => all.reduce((total, each) => total + each[direction], 0);
  return { egress: sum("egress"), ingress: sum("ingress") };
}
