/**
 * Joins a world's socket to an outside socket until both are closed, one side resets, or the broker cuts the
 * connection.
 */
import { hasSaidAll, isReset, reset, type WorldSocket } from "../../world/backend.ts";
import type { Allowance } from "./allowance.ts";
import type { Bound } from "./bound.ts";
import { Egress, type Refused } from "./egress.ts";
import type { FirstBytesReader } from "./first-bytes.ts";
import type { UpstreamSocket } from "./upstream-socket.ts";

/**
 * Keep-alive delay: together with the kernel's probes it finds idle connections with a dead peer. A peer is a host, or
 * a program in the world that ended with its half open and lost its socket to the kernel's timeout (tcp(7),
 * tcp_fin_timeout).
 */
const KEEP_ALIVE_MS = 60_000;

/** A reset discards bytes still unsent by the kernel; bytes already paid from a budget get this long to arrive. */
const LAST_BYTES_MS = 200;

export type PumpParts = {
  /** Unread, except for bytes in the socket's own buffer. */
  readonly world: WorldSocket;
  /** Connected. */
  readonly upstream: UpstreamSocket;
  /** Limits the world's egress. Ingress is counted but not limited: `egress_budget` is about egress. */
  readonly allowance: Allowance;
  /** Compares the world's first bytes with the dialled name. */
  readonly firstBytes?: FirstBytesReader | undefined;
  /** Called when the world has sent its last byte and the kernel has it; not after a break. */
  readonly onSent?: () => void;
  /** Bounds the held first bytes of all connections of the world; undefined: no bound beyond each reader's own. */
  readonly held?: Bound | undefined;
};

/**
 * How a connection ended, with the bytes forwarded in each direction.
 * - `closed`: both sides finished.
 * - `reset`: one side broke off, and the other got a reset; `reason` is the error code, if known.
 * - `cut`: by `cut` with its reason, by the allowance with `budget`, or by the first bytes with `first_bytes` and
 *   `refused`.
 */
export type PumpEnd = {
  readonly egress: number;
  readonly ingress: number;
  readonly ended: "closed" | "reset" | "cut";
  readonly reason: string | undefined;
  readonly refused: Refused | undefined;
};

type Ending = Omit<PumpEnd, "egress" | "ingress">;

/**
 * Forwards bytes between both sockets.
 * - FIN is forwarded as FIN, each direction by itself. An error, a reset or a cut is forwarded as a reset, so nobody
 *   mistakes a partial stream for a complete one.
 * - A slow reader slows the sender down. At most one read of the world and two of the outside (`ReadBuffers`) are
 *   buffered.
 * - Idle connections stay open.
 */
export class Pump {
  readonly #world: WorldSocket;
  readonly #upstream: UpstreamSocket;
  readonly #egress: Egress;
  readonly #settle: (end: PumpEnd) => void;
  #isOver = false;

  /** Settles once; never rejects. */
  readonly ended: Promise<PumpEnd>;

  constructor({ world, upstream, allowance, firstBytes, held, onSent = () => {} }: PumpParts) {
    const { promise, resolve } = pending<PumpEnd>();
    this.ended = promise;
    this.#settle = resolve;
    this.#world = world;
    this.#upstream = upstream;
    this.#egress = new Egress({
      world,
      upstream,
      allowance,
      firstBytes,
      held,
      onSent,
      onRefused: (refused) => this.#break({ ended: "cut", reason: "first_bytes", refused }),
      onSpent: () => this.#stopSending(),
      onFailed: (error) => this.cut(error.message),
    });
    this.#join();
  }

  /** Bytes forwarded from the world so far. */
  get egress(): number {
    return this.#egress.sent;
  }

  /** Bytes forwarded to the world so far. */
  get ingress(): number {
    return this.#upstream.poured;
  }

  /** Resets both sides now; does nothing after the end. */
  cut(reason: string): void {
    this.#break({ ended: "cut", reason, refused: undefined });
  }

  #join(): void {
    // Node leaves `allowHalfOpen` off on a socket received from another process.
    this.#world.allowHalfOpen = true;
    for (const socket of [this.#world, this.#upstream]) {
      socket.setNoDelay(true);
      socket.setKeepAlive(true, KEEP_ALIVE_MS);
      socket.on("error", (error: NodeJS.ErrnoException) => this.#reset(error.code));
      socket.on("close", () => this.#onClose());
      // Must be registered before the listeners that forward the end.
      socket.on("end", () => {
        if (isReset(socket)) this.#reset("ECONNRESET");
      });
    }
    this.#upstream.on("end", () => this.#endWorld());
    if (this.#world.destroyed || this.#upstream.destroyed) return this.#reset(undefined);
    this.#upstream.pour(this.#world);
    this.#egress.start();
  }

  #endWorld(): void {
    if (!this.#isOver) this.#world.end();
  }

  #onClose(): void {
    const sockets = [this.#world, this.#upstream];
    const gone = sockets.filter(({ closed }) => closed);
    if (!gone.every(hasSaidAll)) return this.#reset(undefined);
    if (gone.length === sockets.length)
      this.#finish({ ended: "closed", reason: undefined, refused: undefined });
  }

  #reset(reason: string | undefined): void {
    this.#break({ ended: "reset", reason, refused: undefined });
  }

  #break(ending: Ending): void {
    if (this.#isOver) return;
    this.#finish(ending);
    reset(this.#world);
    reset(this.#upstream);
  }

  /**
   * Resets the world's side at once, and the server's side after the server had time to receive bytes already paid for.
   */
  #stopSending(): void {
    if (this.#isOver) return;
    this.#finish({ ended: "cut", reason: "budget", refused: undefined });
    reset(this.#world);
    this.#upstream.pause();
    const timer = setTimeout(() => reset(this.#upstream), LAST_BYTES_MS);
    this.#upstream.once("close", () => clearTimeout(timer));
  }

  #finish(ending: Ending): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#egress.stop();
    this.#settle({ egress: this.egress, ingress: this.ingress, ...ending });
  }
}

function pending<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
