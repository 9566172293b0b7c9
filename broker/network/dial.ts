import { setMaxListeners } from "node:events";
import { isIP, Socket } from "node:net";

/** RFC 8305 section 8, Connection Attempt Delay. */
const NEXT_AFTER_MS = 250;

const TOTAL_MS = 10_000;

/** A name may have any number of addresses; with more, the last ones would not be reached within the time anyway. */
const MOST_ADDRESSES = 20;

export type DialOptions<Made extends Socket> = {
  /** Ends all attempts; the promise rejects with its reason. */
  readonly signal: AbortSignal;
  /** Makes the socket of each attempt. */
  readonly make: () => Made;
};

/** A socket that is only to be dialled with. */
export function plainSocket(): Socket {
  return new Socket({ allowHalfOpen: true });
}

/** What became of one address: a name of an errno (`ECONNREFUSED`), `ETIMEDOUT` when our own time was over. */
export type Attempt = { readonly address: string; readonly code: string };

/** No address could be reached. */
export class DialError extends Error {
  override readonly name = "DialError";
  /** In the order in which they ended. */
  readonly attempts: readonly Attempt[];

  constructor(port: number, attempts: readonly Attempt[]) {
    const each = attempts.map(({ address, code }) => `${address} (${code})`).join(", ");
    super(`Cannot connect to port ${port} of ${each}`);
    this.attempts = attempts;
  }
}

/**
 * Connects to the first of some addresses that answers (RFC 8305 section 5: families take turns, the next is tried after
 * 250 ms or when one fails, those tried before go on). Within 10 s. The socket has `noDelay`, nothing was read from
 * it, and the losers are destroyed before the promise resolves. It has no listeners: the caller adds one for
 * `error` before it waits for anything.
 *
 * `autoSelectFamily` of Node is not this: it gives each address but the last 250 ms and then drops it, so an address that
 * answers after 300 ms is never reached when another follows (nodejs/node issue 54359).
 *
 * @param addresses checked ones, as text: nothing here resolves a name.
 * @throws DialError when none answers; TypeError for what is no address or no port.
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
  // Any number of connections may be dialled under one signal: Node warns of a leak from the eleventh.
  setMaxListeners(0, signal);
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await race.winner;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** Without repeats, the families in turns, beginning with the first one's (RFC 8305 section 4). */
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
  /** Settles once: everything else is closed by then. */
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

  /** Ends the timers and all attempts that are left; undefined when that was done before. */
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
