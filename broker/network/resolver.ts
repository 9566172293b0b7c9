import { timeLimit } from "../../world/backend.ts";
import { setMaxListeners } from "node:events";
import { type Ask, askHost, askServers, codeOf } from "./ask.ts";
import type { Bound } from "./bound.ts";

/** The current addresses of a name, in the order of the resolver or server; or an error code (`ENOTFOUND`). */
export type Resolution =
  | { readonly kind: "found"; readonly addresses: readonly string[] }
  | { readonly kind: "failed"; readonly code: string };

type Kept = { readonly resolution: Resolution; readonly since: number; readonly until: number };

export type ResolverOptions = {
  /** `address:port` of DNS servers; empty: the host's own resolver. */
  readonly servers: readonly string[];
  /** Longest time an answer is cached, in seconds; also the time for an answer without TTL. */
  readonly refreshSecs: number;
};

const MOST_KEPT = 4096;

/** Addresses kept per name: more are never dialled, and the name's owner chooses their number. */
const MOST_ADDRESSES = 64;

/**
 * Concurrent questions. getaddrinfo keeps running after its timeout, two at a time (libuv gives slow work half of its
 * threads), so without a bound one world's names could block all others for hours.
 */
const MOST_ASKED = 128;

const ANSWER_MS = 5000;

/** How long a failure is cached: shorter than a person's retry, longer than a program's retry loop. */
const FAILURE_MS = 1000;

/** Shortest time an answer is cached, in milliseconds, whatever its TTL. */
const LEAST_MS = 1000;

/** Resolves the names that worlds may reach. Shared by all worlds with the same options. */
export class HostResolver {
  readonly #ask: Ask;
  readonly #refreshMs: number;
  /** In order of last use, for eviction. */
  readonly #kept = new Map<string, Kept>();
  readonly #asking = new Map<string, Promise<Resolution>>();
  #running = 0;

  /**
   * @param ask asks the resolver or the servers; by default chosen from the options.
   * @throws TypeError for an invalid server.
   */
  constructor({ servers, refreshSecs }: ResolverOptions, ask = askerFor(servers)) {
    this.#ask = ask;
    this.#refreshMs = Math.max(LEAST_MS, refreshSecs * 1000);
  }

  /**
   * Resolves a name within 5 s. The addresses are unchecked and may be internal. Callers with the same name share a
   * pending question.
   *
   * @param asked bounds the caller's pending questions; a shared question does not count.
   * @throws the signal's reason. Every other failure is in the result; `EBUSY`: too many pending questions.
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
   * Evicts a name after none of its addresses answered, even before the TTL. Answers younger than a second stay, so a
   * retrying program does not cause a flood of questions.
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
    const limit = timeLimit(ANSWER_MS);
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

  /** Counts a question until getaddrinfo really returns, possibly long after all callers have given up. */
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

/** Awaits the promise; rejects with the signal's reason if aborted earlier. */
async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  // Any number of connections may wait on one signal; Node warns of a leak from the eleventh on.
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
