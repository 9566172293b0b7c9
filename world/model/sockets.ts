/** Joins connections; detects and performs their ends. */
import type { WorldSocket } from "./network.ts";

/** Whether both FINs have passed. */
export function hasSaidAll({ readableEnded, writableFinished }: WorldSocket): boolean {
  return readableEnded && writableFinished;
}

/**
 * Detects a reset that libuv reports as EOF: when bytes and a reset arrive together, libuv reads the bytes and then
 * says EOF. The kernel refuses to send on such a socket, even an empty write, which puts no bytes on the wire. After
 * our own FIN no write is possible, so a reset cannot be detected.
 */
export function isReset(socket: WorldSocket): boolean {
  if (socket.writableEnded) return false;
  socket.write(new Uint8Array(0));
  return socket.errored !== null;
}

/**
 * Resets a connection. libuv refuses a reset while its FIN is pending (EINVAL), and would leave the descriptor open.
 */
export function reset(socket: WorldSocket): void {
  if (socket.destroyed) return;
  const isEnding = socket.writableEnded && !socket.writableFinished && socket.writableLength === 0;
  if (isEnding) socket.once("finish", () => socket.resetAndDestroy());
  else socket.resetAndDestroy();
}

/**
 * Joins two sockets into a connection. FIN is forwarded as FIN, each direction by itself; an error, a reset or an
 * abrupt end is forwarded as a reset, so nobody mistakes a partial stream for a complete one. A slow reader slows the
 * sender down. Both sockets must allow half-open connections.
 */
export function joinSockets(one: WorldSocket, other: WorldSocket): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.setNoDelay(true);
    // Node destroys the failed socket itself.
    from.on("error", () => reset(to));
    from.on("close", () => {
      if (!hasSaidAll(from)) reset(to);
    });
    // Must be registered before `pipe`'s own listener, which forwards the end.
    from.on("end", () => {
      if (isReset(from)) for (const socket of [from, to]) reset(socket);
    });
    from.pipe(to);
  }
  if (one.destroyed || other.destroyed) for (const socket of [one, other]) reset(socket);
}
