import { setMaxListeners } from "node:events";
import { isIP, type Socket } from "node:net";

/** RFC 8305 section 8, Connection Attempt Delay. */
const NEXT_AFTER_MS = 250;

const TOTAL_MS = 10_000;

/** A name may have any number of addresses; `TOTAL_MS` is too short for more. */
const MOST_ADDRESSES = 20;

export type DialOptions<Made extends Socket> = {
  /** Aborts all attempts; the promise then rejects with the signal's reason. */
  readonly signal: AbortSignal;
  /** Makes a new socket for each attempt. */
  readonly make: () => Made;
};

/** The outcome for an address: an errno name (`ECONNREFUSED`), or `ETIMEDOUT` after `TOTAL_MS`. */
export type Attempt = { readonly address: string; readonly code: string };

/** Thrown when no address could be reached. */
export class DialError extends Error {
  override readonly name = "DialError";
  /** In the order of failure. */
  readonly attempts: readonly Attempt[];

  constructor(port: number, attempts: readonly Attempt[]) {
    const each = attempts.map(({ address, code }) => `${address} (${code})`).join(", ");
    super(`Cannot connect to port ${port} of ${each}`);
    this.attempts = attempts;
  }
}

/**
 * Connects to the first answering address, within 10 s. As in RFC 8305 section 5, families alternate, and the next
 * attempt starts after 250 ms or at a failure, while earlier attempts go on. The losing sockets are destroyed before
 * the promise resolves. The winner has `noDelay`, is unread and has no listeners: the caller must add an `error`
 * listener before it awaits anything.
 *
 * Not Node's `autoSelectFamily`: Node drops each address but the last after 250 ms, so an address answering after 300
 * ms is never reached when another follows (nodejs/node issue 54359).
 *
 * @param addresses literal and already checked; nothing is resolved here.
 * @throws DialError when no address answers; TypeError for an invalid address or port.
 */
export async function dial<Made extends Socket>(
  addresses: readonly string[],
  port: number,
  { signal, make }: DialOptions<Made>,
): Promise<Made> {
  signal.throwIfAborted();
  const order = dialOrder(addresses);
  const stray = order.find((address) => isIP(address) === 0);
  if (stray !== undefined || order.length === 0)
    throw new TypeError(`Cannot dial '${stray ?? ""}': it must be an address`);
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new TypeError(`Cannot dial port ${port}: it must be 1 to 65535`);
  const race = new Race(order, port, make);
  const stop = () => race.stop(signal.reason);
  // Any number of dials may wait on one signal; Node warns of a leak from the eleventh on.
  setMaxListeners(0, signal);
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await race.winner;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** Removes duplicates and alternates the families, starting with the first address's family (RFC 8305 section 4). */
export function dialOrder(addresses: readonly string[]): string[] {
  const all = [...new Set(addresses)];
  const family = isIP(all[0] ?? "");
  const same = all.filter((address) => isIP(address) === family);
  const other = all.filter((address) => isIP(address) !== family);
  const turns = same.flatMap((address, at) => [address, ...other.slice(at, at + 1)]);
  return [...turns, ...other.slice(same.length)].slice(0, MOST_ADDRESSES);
}

type Settle<Made> = { resolve(socket: Made): void; reject(error: unknown): void };

class Race<Made extends Socket> {
  /** Settles once; all other attempts are closed by then. */
  readonly winner: Promise<Made>;
  readonly #port: number;
  readonly #make: () => Made;
  readonly #untried: string[];
  readonly #trying = new Map<Made, string>();
  readonly #failed: Attempt[] = [];
  readonly #limit: NodeJS.Timeout;
  #next: NodeJS.Timeout | undefined;
  #settle: Settle<Made> | undefined;

  constructor(order: readonly string[], port: number, make: () => Made) {
    this.#port = port;
    this.#make = make;
    this.#untried = [...order];
    this.#limit = setTimeout(() => this.#timeOut(), TOTAL_MS);
    this.winner = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    this.#tryNext();
  }

  stop(reason: unknown): void {
    this.#finish()?.reject(reason);
  }

  #tryNext(): void {
    clearTimeout(this.#next);
    const address = this.#untried.shift();
    if (address === undefined) return;
    const socket = this.#make();
    socket.setNoDelay(true);
    socket.connect({ host: address, port: this.#port, autoSelectFamily: false });
    this.#trying.set(socket, address);
    socket.once("connect", () => this.#won(socket));
    socket.on("error", (error: NodeJS.ErrnoException) => this.#lost(socket, address, error.code));
    if (this.#untried.length > 0) this.#next = setTimeout(() => this.#tryNext(), NEXT_AFTER_MS);
  }

  #won(socket: Made): void {
    this.#trying.delete(socket);
    socket.removeAllListeners("error");
    this.#finish()?.resolve(socket);
  }

  #lost(socket: Made, address: string, code = "EIO"): void {
    if (!this.#trying.delete(socket)) return;
    this.#failed.push({ address, code });
    this.#tryNext();
    if (this.#trying.size === 0) this.#finish()?.reject(new DialError(this.#port, this.#failed));
  }

  #timeOut(): void {
    const late = [...this.#trying.values(), ...this.#untried];
    this.#failed.push(...late.map((address) => ({ address, code: "ETIMEDOUT" })));
    this.#finish()?.reject(new DialError(this.#port, this.#failed));
  }

  /** Clears the timers and destroys the remaining attempts; undefined on a second call. */
  #finish(): Settle<Made> | undefined {
    const settle = this.#settle;
    this.#settle = undefined;
    clearTimeout(this.#limit);
    clearTimeout(this.#next);
    this.#untried.length = 0;
    for (const socket of this.#trying.keys()) socket.destroy();
    this.#trying.clear();
    return settle;
  }
}
