import type { LiveCommand } from "./live-command.ts";

/** How long an ended command waits for a client to attach, in milliseconds. */
const KEPT_MS = 10 * 60_000;

/** Running commands that may be detached; each holds up to 256 KiB of output. */
const MOST_DETACHABLE = 100;

/** Ended commands kept at most; each holds up to 256 KiB of output. */
const MOST_ENDED = 64;

/** The commands of `/v1/stream` that can be attached to, by span. */
export class LiveCommands {
  readonly #commands = new Map<string, LiveCommand>();

  #detachable = 0;

  /** Counts one more command that may be detached, from its request on; false: there are too many. */
  count(): boolean {
    if (this.#detachable >= MOST_DETACHABLE) return false;
    this.#detachable += 1;
    return true;
  }

  /** A counted command has ended, or was refused. */
  countBack(): void {
    this.#detachable -= 1;
  }

  add(span: string, command: LiveCommand): void {
    this.#commands.set(span, command);
  }

  of(span: string): LiveCommand | undefined {
    return this.#commands.get(span);
  }

  /** Forgets an ended command: at once where its client has seen the end, else after some time. */
  ended(span: string): void {
    const command = this.#commands.get(span);
    if (command === undefined) return;
    if (command.isAttached) return this.forget(span);
    setTimeout(() => this.forget(span), KEPT_MS).unref();
    const old = [...this.#commands].filter(([, { outcome }]) => outcome !== undefined);
    for (const [each] of old.slice(0, Math.max(0, old.length - MOST_ENDED))) this.forget(each);
  }

  forget(span: string): void {
    this.#commands.delete(span);
  }
}
