import type { WorldViolation } from "../../world/backend.ts";
import type { SpanRecord } from "../spans/trace.ts";

/** Bytes sent by the world, and bytes received. */
export type Traffic = { readonly egress: number; readonly ingress: number };

/** One connection of a command. */
export type Carried = {
  readonly traffic: Traffic;
  /** Settles when no bytes of the world are on their way to the outside any more; never rejects. */
  readonly sent: Promise<void>;
};

/** How long a reply waits for its command's last bytes. */
const LAST_MS = 250;

/** Most subjects kept for a command's reply; the trace has every recorded refusal. */
const MAX_SUBJECTS = 1000;

/** One command's share of its world's network. */
export class CommandNetwork {
  /** The command's `command_start` line. */
  readonly started: SpanRecord;
  readonly #onViolation: (violation: WorldViolation) => void;
  readonly #hasUsed: () => boolean;
  readonly #open = new Set<Carried>();
  /** Sum over ended connections: a background process can make any number of connections. */
  #ended: Traffic = { egress: 0, ingress: 0 };
  readonly #scopes = new Set<string>();
  readonly #refused = new Map<string, string>();
  /** Why allowed names and connections failed, by target. */
  readonly #failed = new Map<string, { readonly host: string; readonly message: string }>();
  /** Refusals that an enforcing policy would have made, by host. */
  readonly #observed = new Map<string, string>();
  /** Pending owner lookups of connections. */
  readonly #asking = new Set<Promise<unknown>>();
  #isMeasured = true;
  #isOver = false;
  /** Settles when the last connections are known. */
  #last: Promise<void> | undefined;

  /** `hasUsed`: whether anything in the world has used the network since the command began. */
  constructor(started: SpanRecord, onViolation: (violation: WorldViolation) => void, hasUsed: () => boolean) {
    this.started = started;
    this.#onViolation = onViolation;
    this.#hasUsed = hasUsed;
  }

  /** Adds a connection. The caller calls the returned function when the connection has ended. */
  add(scope: string, connection: Carried): () => void {
    this.#open.add(connection);
    this.#scopes.add(scope);
    return () => {
      if (this.#open.delete(connection)) this.#ended = sumOf([this.#ended, connection.traffic]);
    };
  }

  /** Whether no process of the command is left. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Notes the end of the last process. `last` settles when the last connections are known; never rejects. */
  end(last: Promise<void>): void {
    this.#isOver = true;
    this.#last = last;
  }

  /** Records a refusal, once per subject; beyond `MAX_SUBJECTS` subjects, each time. */
  refuse(violation: WorldViolation): void {
    if (this.#refused.has(violation.subject)) return;
    if (this.#refused.size < MAX_SUBJECTS) this.#refused.set(violation.subject, violation.message);
    this.#onViolation(violation);
  }

  /** Notes in a sentence why an allowed name or connection failed: the program sees only a reset, or no name. */
  fail(subject: string, host: string, message: string): void {
    if (this.#failed.size < MAX_SUBJECTS) this.#failed.set(subject, { host, message });
  }

  /** Notes a refusal that an observing policy did not make. Kept once per host: the lookup precedes the connection. */
  observe(host: string, message: string): void {
    if (!this.#observed.has(host) && this.#observed.size < MAX_SUBJECTS) this.#observed.set(host, message);
  }

  /** Notes that a connection of nobody known may be this command's. */
  lose(): void {
    this.#isMeasured = false;
  }

  /** Registers a pending owner lookup of a connection that may be this command's. */
  expect(answer: Promise<unknown>): void {
    this.#asking.add(answer);
    void answer.finally(() => this.#asking.delete(answer));
  }

  /**
   * Settles when the owner of each connection is known and, within `LAST_MS`, a command that used the network has sent its last
   * byte. `closed` settles when no process of the command is left; undefined: processes may stay, and go on sending.
   */
  async settled(closed: Promise<void> | undefined): Promise<void> {
    await Promise.allSettled(this.#asking);
    if (!this.#hasUsed() || (closed === undefined && !this.#isOver)) return;
    if (!(await isWithin(LAST_MS, this.#allSent(closed)))) this.#isMeasured = false;
  }

  async #allSent(closed: Promise<void> | undefined): Promise<void> {
    await closed;
    await this.#last;
    await Promise.allSettled(this.#asking);
    await Promise.all([...this.#open].map(({ sent }) => sent));
  }

  /**
   * Traffic up to now; null when more may have been sent: a connection of nobody known may be this command's, or its last bytes
   * were on their way when it was settled. A background connection goes on and gets a separate line at its end.
   */
  get traffic(): Traffic | null {
    return this.#isMeasured ? sumOf([this.#ended, ...[...this.#open].map(({ traffic }) => traffic)]) : null;
  }

  /** Each connection as `net:name:port`. */
  get scopes(): readonly string[] {
    return [...this.#scopes].sort();
  }

  /** A sentence for each failed name and connection, or for those whose host a text names. */
  failed(text?: string): readonly string[] {
    return [...this.#failed]
      .filter(([, { host }]) => text?.includes(host) ?? true)
      .map(([, { message }]) => message);
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

function isWithin(ms: number, promise: Promise<void>): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), ms);
    void promise.then(() => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}
