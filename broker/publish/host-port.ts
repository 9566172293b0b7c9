import { createServer, type Server, type Socket } from "node:net";
import type { World } from "../../world/backend.ts";
import { hasSaidAll, isReset, reset } from "../network/resets.ts";

/** The one address that is listened on: nobody on the network is to reach a world. */
export const HOST_ADDRESS = "127.0.0.1";

/** Connections of one port at once; the next is reset. */
export const MAX_CONNECTIONS = 512;

/** How long a world may take to answer a connection: one that is being made is waited for. */
const DIAL_PATIENCE_MS = 20_000;

export type HostPortParts = {
  readonly hostPort: number;
  /** Of the world's localhost. */
  readonly port: number;
  /** The world that a connection which comes now leads to; undefined when there is none. */
  readonly worldOf: () => Promise<World> | undefined;
  /** Whether the broker holds no more than it may of such connections. */
  readonly hasRoom: () => boolean;
};

/**
 * A port of the host's loopback that leads to one of a world's localhost. A connection waits until the world is ready; one
 * for which nobody listens inside, or for which there is no room, is reset.
 */
export class HostPort {
  readonly hostPort: number;
  readonly port: number;
  readonly #parts: HostPortParts;
  readonly #server: Server;
  /** By the host's end; the world once it has answered. */
  readonly #connections = new Map<Socket, World | undefined>();
  readonly #watched = new WeakSet<World>();
  #isClosed = false;

  constructor(parts: HostPortParts) {
    this.hostPort = parts.hostPort;
    this.port = parts.port;
    this.#parts = parts;
    this.#server = createServer({ allowHalfOpen: true }, (socket) => this.#accept(socket));
  }

  get connections(): number {
    return this.#connections.size;
  }

  /** Settles with null when it is open, else with the errno name that says why not; never rejects. */
  listen(): Promise<string | null> {
    return new Promise((resolve) => {
      // Later on: a connection could not be accepted, ignoring: its client sees that, and the next one is tried.
      this.#server.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
      // One that is closed before it listens may never say that it does.
      this.#server.once("close", () => resolve("ECANCELED"));
      this.#server.listen({ host: HOST_ADDRESS, port: this.hostPort, exclusive: true }, () => {
        if (this.#isClosed) this.#server.close();
        else resolve(null);
      });
    });
  }

  /** The port is free when this returns, and its connections are reset. */
  close(): void {
    this.#isClosed = true;
    this.#server.close();
    for (const socket of this.#connections.keys()) reset(socket);
  }

  #accept(socket: Socket): void {
    // It is answered or reset by what follows, ignoring: a client that breaks off before that is told nothing.
    socket.on("error", () => undefined);
    if (this.#isClosed || this.#connections.size >= MAX_CONNECTIONS || !this.#parts.hasRoom())
      return reset(socket);
    this.#connections.set(socket, undefined);
    socket.once("close", () => this.#connections.delete(socket));
    this.#lead(socket).catch(() => reset(socket));
  }

  async #lead(socket: Socket): Promise<void> {
    const dialled = this.#dial(socket);
    const inside = await inTime(dialled);
    if (inside === undefined) {
      dialled.then(
        (late) => late.destroy(),
        () => {
          // Nobody was there after all, ignoring: the client has its reset.
        },
      );
      return reset(socket);
    }
    // Before anything else is awaited: an error of a socket that nobody listens to would end the broker.
    join(socket, inside);
  }

  async #dial(socket: Socket): Promise<Socket> {
    const world = await this.#parts.worldOf();
    if (world === undefined || world.network === null)
      throw new Error("The session has no world with a network");
    const inside = await world.network.connect(this.port);
    if (this.#connections.has(socket)) this.#connections.set(socket, world);
    this.#watch(world);
    return inside;
  }

  /** A server that died with its world may have left a connection of which only half is over. */
  #watch(world: World): void {
    if (this.#watched.has(world)) return;
    this.#watched.add(world);
    void world.ended.then(() => {
      for (const [socket, theirs] of this.#connections) if (theirs === world) reset(socket);
    });
  }
}

/** Undefined when it takes too long; rejects as it does. */
async function inTime<T>(slow: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), DIAL_PATIENCE_MS);
  });
  try {
    return await Promise.race([slow, patience]);
  } finally {
    clearTimeout(timer);
  }
}

/** Two sockets as one connection: what comes out of either goes into the other. */

/**
 * A FIN passes on as a FIN, each way by itself; an error, a reset, and an end that is none as a reset: nobody takes half
 * of something for the whole. A slow reader slows the other side down. Both must allow half-open connections.
 */
function join(one: Socket, other: Socket): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.setNoDelay(true);
    // Node destroys the socket itself.
    from.on("error", () => reset(to));
    from.on("close", () => {
      if (!hasSaidAll(from)) reset(to);
    });
    // Before the one by which `pipe` passes the end on.
    from.on("end", () => {
      if (isReset(from)) for (const socket of [from, to]) reset(socket);
    });
    from.pipe(to);
  }
  if (one.destroyed || other.destroyed) for (const socket of [one, other]) reset(socket);
}
