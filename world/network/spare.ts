/** A network that is made before a world asks for one. */
import { NetworkHelper } from "./helper.ts";

/**
 * How long after one was taken the next is made. Node's spawn holds the whole broker up for some milliseconds, the more the
 * larger it is: a world takes up to 50 ms on a busy machine, and its first command should not have to wait for the next one's.
 */
const REFILL_MS = 100;

/** What starting one may take; a busy machine takes 50 ms. */
const PATIENCE_MS = 10_000;

/**
 * Keeps one network ready, from the first that is taken on. It costs a process that sleeps, as an idle world's helper
 * does, and nothing in it is of any world yet.
 */
export class SpareNetwork {
  readonly #init: string;
  readonly #closing = new AbortController();
  #ready: NetworkHelper | undefined;
  #refill: NodeJS.Timeout | undefined;
  #isStarting = false;

  /** @param init the `substrate-init` program. */
  constructor(init: string) {
    this.#init = init;
  }

  /** The one that is ready, or one that is made now. Throws {@link WorldUnavailable}. */
  async take(signal: AbortSignal): Promise<NetworkHelper> {
    signal.throwIfAborted();
    const ready = this.#ready;
    this.#ready = undefined;
    this.#refillLater();
    return ready ?? (await NetworkHelper.start(this.#init, signal));
  }

  /** Ends the one that waits, and makes no more. */
  close(): void {
    this.#closing.abort(new Error("No more worlds are made"));
    clearTimeout(this.#refill);
    this.#ready?.end();
    this.#ready = undefined;
  }

  /** Not while worlds are made one after the other. */
  #refillLater(): void {
    if (this.#closing.signal.aborted) return;
    clearTimeout(this.#refill);
    this.#refill = setTimeout(() => void this.#start(), REFILL_MS).unref();
  }

  async #start(): Promise<void> {
    if (this.#isStarting || this.#ready !== undefined) return;
    this.#isStarting = true;
    try {
      const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(PATIENCE_MS)]);
      this.#keep(await NetworkHelper.start(this.#init, signal));
    } catch {
      // The next world makes its own and says why that fails, ignoring: nobody has asked for this one.
    } finally {
      this.#isStarting = false;
    }
  }

  #keep(network: NetworkHelper): void {
    if (this.#closing.signal.aborted) return network.end();
    this.#ready = network;
    void network.ended.then(() => {
      if (this.#ready === network) this.#ready = undefined;
    });
  }
}
