import type { LiveCommand } from "./live-command.ts";

/** How long an ended command waits for a client to attach, in milliseconds. */
const KEPT_MS = 10 * 60_000;

/** Running commands of one caller that may be detached; each holds up to 256 KiB of output. */
const MOST_OF_ONE = 100;

/** Those of all agents together; the operator's are not among them. */
const MOST_OF_AGENTS = 400;

/** Ended commands kept at most, of one caller and of all; each holds up to 256 KiB of output. */
const MOST_ENDED_OF_ONE = 32;
const MOST_ENDED = 256;

const OPERATOR = "operator";

/** The commands of `/v1/stream` that can be attached to, by span. */
export class LiveCommands {
  readonly #commands = new Map<string, LiveCommand>();

  /** The callers of ended commands, the oldest first. */
  readonly #ended = new Map<string, string>();

  /** How many by caller: an agent with a socket of its own, all others (`label`), or the operator. */
  readonly #detachable = new Map<string, number>();

  /** Counts one more command that may be detached, from its request on; false: there are too many. */
  count(caller: string): boolean {
    const own = this.#detachable.get(caller) ?? 0;
    let ofAgents = 0;
    for (const [other, count] of this.#detachable) ofAgents += other === OPERATOR ? 0 : count;
    if (own >= MOST_OF_ONE || (caller !== OPERATOR && ofAgents >= MOST_OF_AGENTS)) return false;
    this.#detachable.set(caller, own + 1);
    return true;
  }

  /** A counted command has ended, or was refused. */
  countBack(caller: string): void {
    const left = (this.#detachable.get(caller) ?? 1) - 1;
    if (left === 0) this.#detachable.delete(caller);
    else this.#detachable.set(caller, left);
  }

  add(span: string, command: LiveCommand): void {
    this.#commands.set(span, command);
  }

  of(span: string): LiveCommand | undefined {
    return this.#commands.get(span);
  }

  /** Forgets an ended command: at once where its client has seen the end, else after some time, or when its caller has more of them. */
  ended(span: string, caller: string): void {
    const command = this.#commands.get(span);
    if (command === undefined) return;
    if (command.isAttached) return this.forget(span);
    setTimeout(() => this.forget(span), KEPT_MS).unref();
    this.#ended.set(span, caller);
    if (this.#endedOf(caller).length > MOST_ENDED_OF_ONE) this.#forgetOldest(caller);
    if (this.#ended.size <= MOST_ENDED) return;
    const counts = [...new Set(this.#ended.values())].map((one) => [one, this.#endedOf(one).length] as const);
    const [most = caller] = counts.toSorted(([, one], [, other]) => other - one)[0] ?? [];
    this.#forgetOldest(most);
  }

  #endedOf(caller: string): readonly string[] {
    return [...this.#ended].filter(([, one]) => one === caller).map(([span]) => span);
  }

  #forgetOldest(caller: string): void {
    const [oldest] = this.#endedOf(caller);
    if (oldest !== undefined) this.forget(oldest);
  }

  forget(span: string): void {
    this.#commands.delete(span);
    this.#ended.delete(span);
  }
}
