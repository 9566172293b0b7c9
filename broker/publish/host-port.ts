import { createServer, type Server, type Socket } from "node:net";
import { joinSockets, reset, type World, type WorldSocket } from "../../world/backend.ts";

/** The only listening address: no machine on the network may reach a world. */
export const HOST_ADDRESS = "127.0.0.1";

/** Concurrent connections per port; any further connection is reset. */
export const MAX_CONNECTIONS = 512;

/** Time limit for connecting to a world, including a world still being made. */
const DIAL_PATIENCE_MS = 20_000;

export type HostPortParts = {
  readonly hostPort: number;
  /** A port of the world's localhost. */
  readonly port: number;
  /** The world for a new connection; undefined without a world. */
  readonly worldOf: () => Promise<World> | undefined;
  /** Whether the broker may hold another published connection. */
  readonly hasRoom: () => boolean;
};

/**
 * A port of the host's loopback, forwarded to a port of a world's localhost. A connection waits until the world is
 * ready, and is reset when nobody listens inside or a bound is reached.
 */
export class HostPort {
  readonly hostPort: number;
  readonly port: number;
  readonly #parts: HostPortParts;
  readonly #server: Server;
  /** By the host's socket; the value is set once the world has answered. */
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

  /** Opens the port. Resolves to null, or to the errno name of the failure; never rejects. */
  listen(): Promise<string | null> {
    return new Promise((resolve) => {
      // After opening: accepting a connection failed, ignoring: its client sees the failure, and the server goes on.
      this.#server.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
      // A server closed before listening may never emit `listening`.
      this.#server.once("close", () => resolve("ECANCELED"));
      this.#server.listen({ host: HOST_ADDRESS, port: this.hostPort, exclusive: true }, () => {
        if (this.#isClosed) this.#server.close();
        else resolve(null);
      });
    });
  }

  /** Frees the port and resets its connections before returning. */
  close(): void {
    this.#isClosed = true;
    this.#server.close();
    for (const socket of this.#connections.keys()) reset(socket);
  }

  #accept(socket: Socket): void {
    // Until the socket is answered or reset, ignoring: a client breaking off earlier needs no notice.
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
          // Connecting failed after the time limit, ignoring: the client already has its reset.
        },
      );
      return reset(socket);
    }
    // Before any further await: an unhandled socket error would end the broker.
    joinSockets(socket, inside);
  }

  async #dial(socket: Socket): Promise<WorldSocket> {
    const world = await this.#parts.worldOf();
    if (world === undefined || world.network === null)
      throw new Error("The session has no world with a network");
    const inside = await world.network.connect(this.port);
    if (this.#connections.has(socket)) this.#connections.set(socket, world);
    this.#watch(world);
    return inside;
  }

  /**
   * Resets a world's connections when the world ends: a server that died with its world may leave a half-closed
   * connection.
   */
  #watch(world: World): void {
    if (this.#watched.has(world)) return;
    this.#watched.add(world);
    void world.ended.then(() => {
      for (const [socket, theirs] of this.#connections) if (theirs === world) reset(socket);
    });
  }
}

/** Resolves to undefined after `DIAL_PATIENCE_MS`; rejects with the promise. */
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
