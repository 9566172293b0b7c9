/** Joins a world's socket and one to the outside, until both are closed, one is reset, or the connection is cut. */
import type { Socket } from "node:net";
import type { Allowance } from "./allowance.ts";
import type { Bound } from "./bound.ts";
import { Egress, type Refused } from "./egress.ts";
import type { FirstBytesReader } from "./first-bytes.ts";
import { hasSaidAll, isReset, reset } from "./resets.ts";
import type { UpstreamSocket } from "./upstream-socket.ts";

/**
 * How soon an idle connection is noticed whose other end has vanished, together with the kernel's own repeats: a host, or
 * a program in the world that ended with half of it open and whose socket the kernel has dropped since (tcp(7),
 * tcp_fin_timeout).
 */
const KEEP_ALIVE_MS = 60_000;

/** A reset throws away what the kernel has not sent yet, so what a budget has paid for gets this long to arrive. */
const LAST_BYTES_MS = 200;

export type PumpParts = {
  /** Nothing has been read from it but what is still in its buffer. */
  readonly world: Socket;
  /** Connected. */
  readonly upstream: UpstreamSocket;
  /** What the world may send. What it receives is counted and held by nothing: `egress_budget` is of egress. */
  readonly allowance: Allowance;
  /** Compares what the world sends first with the name it dialled. */
  readonly firstBytes?: FirstBytesReader | undefined;
  /** What all connections of its world may hold back for that; undefined: each as much as its reader reads. */
  readonly held?: Bound | undefined;
};

/**
 * How a connection ended, with the bytes of either direction that were passed on.
 * - `closed`: both sides said all they had to say.
 * - `reset`: one of them broke off, and the other was told so; `reason` is the error's code, where there was one.
 * - `cut`: by `cut`, with its reason; by the allowance, with `budget`; by the first bytes, with `first_bytes` and what
 *   was `refused` in them.
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
 * - FIN passes on as FIN, each way by itself; an error or a reset as a reset, and a cut too: nobody takes half of
 *   something for the whole.
 * - A slow reader slows the other side down. Held are at most one read of the world, and two of the outside
 *   (`ReadBuffers`).
 * - An idle connection stays.
 */
export class Pump {
  readonly #world: Socket;
  readonly #upstream: UpstreamSocket;
  readonly #egress: Egress;
  readonly #settle: (end: PumpEnd) => void;
  #isOver = false;

  /** Settles once; never rejects. */
  readonly ended: Promise<PumpEnd>;

  constructor({ world, upstream, allowance, firstBytes, held }: PumpParts) {
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
      onRefused: (refused) => this.#break({ ended: "cut", reason: "first_bytes", refused }),
      onSpent: () => this.#stopSending(),
      onFailed: (error) => this.cut(error.message),
    });
    this.#join();
  }

  /** Bytes of the world that were passed on so far. */
  get egress(): number {
    return this.#egress.sent;
  }

  /** Bytes for the world that were passed on so far. */
  get ingress(): number {
    return this.#upstream.poured;
  }

  /** Resets both sides now. Nothing happens when the connection has ended. */
  cut(reason: string): void {
    this.#break({ ended: "cut", reason, refused: undefined });
  }

  #join(): void {
    // A socket that came from another process is born without it.
    this.#world.allowHalfOpen = true;
    for (const socket of [this.#world, this.#upstream]) {
      socket.setNoDelay(true);
      socket.setKeepAlive(true, KEEP_ALIVE_MS);
      socket.on("error", (error: NodeJS.ErrnoException) => this.#reset(error.code));
      socket.on("close", () => this.#onClose());
      // Before those that pass the end on.
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

  /** The world learns of it at once, the server when it has had the time to take what was paid for. */
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
