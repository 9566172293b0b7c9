/** Pre-warms a network for the next world. */
import { timeLimit } from "../model/time-limit.ts";
import { NetworkHelper } from "./helper.ts";

/**
 * Delay before the refill. Node's spawn blocks the whole broker for some milliseconds, longer in a larger process: a world takes
 * up to 50 ms on a busy machine, and its first command should not wait for the next world's network.
 */
const REFILL_MS = 100;

/** Time limit for starting a helper; a busy machine takes 50 ms. */
const PATIENCE_MS = 10_000;

/**
 * Keeps one network ready, from the first `take` on. Cost: one sleeping process, like an idle world's helper; the network belongs
 * to no world yet.
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

  /** Returns the ready network, or makes a new one. Throws {@link WorldUnavailable}. */
  async take(signal: AbortSignal): Promise<NetworkHelper> {
    signal.throwIfAborted();
    const ready = this.#ready;
    this.#ready = undefined;
    this.#refillLater();
    return ready ?? (await NetworkHelper.start(this.#init, signal));
  }

  /** Ends the ready network, and makes no more. */
  close(): void {
    this.#closing.abort(new Error("The broker is stopping and makes no more worlds"));
    clearTimeout(this.#refill);
    this.#ready?.end();
    this.#ready = undefined;
  }

  /** Restarts the delay, so that no refill runs while worlds are made one after another. */
  #refillLater(): void {
    if (this.#closing.signal.aborted) return;
    clearTimeout(this.#refill);
    this.#refill = setTimeout(() => void this.#start(), REFILL_MS).unref();
  }

  async #start(): Promise<void> {
    if (this.#isStarting || this.#ready !== undefined) return;
    this.#isStarting = true;
    try {
      const signal = timeLimit(PATIENCE_MS, this.#closing.signal);
      this.#keep(await NetworkHelper.start(this.#init, signal));
    } catch {
      // The start failed, ignoring: the next world makes its own network and reports the error.
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
