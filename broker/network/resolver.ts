import { setMaxListeners } from "node:events";
import { type Ask, askHost, askServers, codeOf } from "./ask.ts";
import type { Bound } from "./bound.ts";

/** What a name leads to now, in the order of whoever was asked; or the name of what went wrong (`ENOTFOUND`). */
export type Resolution =
  | { readonly kind: "found"; readonly addresses: readonly string[] }
  | { readonly kind: "failed"; readonly code: string };

type Kept = { readonly resolution: Resolution; readonly since: number; readonly until: number };

export type ResolverOptions = {
  /** `address:port` of DNS servers; none: the host's own resolver. */
  readonly servers: readonly string[];
  /** The longest that an answer is kept, in seconds; how long where nobody says so. */
  readonly refreshSecs: number;
};

const MOST_KEPT = 4096;

/** Of one name: more are never dialled, and a name's owner chooses how many there are. */
const MOST_ADDRESSES = 64;

/**
 * Names asked for at once. getaddrinfo goes on after its time is over, two at a time (libuv lets slow work have half of
 * its threads), so without a bound one world's names would stand before everybody's for hours.
 */
const MOST_ASKED = 128;

const ANSWER_MS = 5000;

/** How long what failed is believed. As short as a person's second try, as long as a program's loop. */
const FAILURE_MS = 1000;

/** The least an answer is kept, in milliseconds, whatever its TTL. */
const LEAST_MS = 1000;

/** Resolves the names that worlds may reach. One for all worlds with the same options. */
export class HostResolver {
  readonly #ask: Ask;
  readonly #refreshMs: number;
  /** In the order of their last use. */
  readonly #kept = new Map<string, Kept>();
  readonly #asking = new Map<string, Promise<Resolution>>();
  #running = 0;

  /**
   * @param ask who is asked, by default what the options say.
   * @throws TypeError for a server that is none.
   */
  constructor({ servers, refreshSecs }: ResolverOptions, ask = askerFor(servers)) {
    this.#ask = ask;
    this.#refreshMs = Math.max(LEAST_MS, refreshSecs * 1000);
  }

  /**
   * The addresses of a name, unchecked: they may be internal. Within 5 s; who asks for a name that is being asked for gets
   * the same answer.
   *
   * @param asked how many questions whoever asks may have under way; one that it shares with others is not counted again.
   * @throws the signal's reason. All else is in the answer; `EBUSY`: too many are being asked for.
   */
  async resolve(name: string, signal: AbortSignal, asked?: Bound): Promise<Resolution> {
    signal.throwIfAborted();
    const kept = this.#kept.get(name);
    if (kept !== undefined && performance.now() < kept.until) {
      this.#keep(name, kept);
      return kept.resolution;
    }
    return await unlessAborted(this.#asking.get(name) ?? this.#question(name, asked), signal);
  }

  /**
   * None of a name's addresses answered: it is asked for anew, even if its time is not over. What is younger than a second
   * stays, so that a program that tries again and again does not become a flood of questions.
   */
  forget(name: string): void {
    const kept = this.#kept.get(name);
    if (kept !== undefined && performance.now() - kept.since >= LEAST_MS) this.#kept.delete(name);
  }

  async #question(name: string, asked: Bound | undefined): Promise<Resolution> {
    if (this.#running >= MOST_ASKED || asked?.take(1) === false) return { kind: "failed", code: "EBUSY" };
    const asking = this.#answer(name, asked);
    this.#asking.set(name, asking);
    try {
      return await asking;
    } finally {
      this.#asking.delete(name);
    }
  }

  async #answer(name: string, asked: Bound | undefined): Promise<Resolution> {
    const limit = AbortSignal.timeout(ANSWER_MS);
    try {
      const { addresses, ttl } = await unlessAborted(this.#counted(name, limit, asked), limit);
      if (addresses.length === 0) return this.#learn(name, { kind: "failed", code: "ENODATA" }, FAILURE_MS);
      const ms = Math.max(LEAST_MS, Math.min(this.#refreshMs, (ttl ?? Infinity) * 1000));
      return this.#learn(name, { kind: "found", addresses: addresses.slice(0, MOST_ADDRESSES) }, ms);
    } catch (error) {
      const code = limit.aborted ? "ETIMEOUT" : codeOf(error);
      return this.#learn(name, { kind: "failed", code }, FAILURE_MS);
    }
  }

  #learn(name: string, resolution: Resolution, ms: number): Resolution {
    const since = performance.now();
    this.#keep(name, { resolution, since, until: since + ms });
    return resolution;
  }

  /** Counts until the question is really over: with getaddrinfo that may be long after nobody waits for it. */
  async #counted(name: string, limit: AbortSignal, asked: Bound | undefined) {
    this.#running++;
    try {
      return await this.#ask(name, limit);
    } finally {
      this.#running--;
      asked?.giveBack(1);
    }
  }

  #keep(name: string, kept: Kept): void {
    this.#kept.delete(name);
    this.#kept.set(name, kept);
    if (this.#kept.size <= MOST_KEPT) return;
    for (const oldest of this.#kept.keys()) return void this.#kept.delete(oldest);
  }
}

function askerFor(servers: readonly string[]): Ask {
  return servers.length === 0 ? askHost : askServers(servers);
}

/** The promise, or the signal's reason when that is earlier. */
async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  // Any number of connections may wait under one signal: Node warns of a leak from the eleventh.
  setMaxListeners(0, signal);
  const over = new AbortController();
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), {
      once: true,
      signal: over.signal,
    });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    over.abort();
  }
}
