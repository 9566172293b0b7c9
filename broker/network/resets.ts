/** Detects and performs the end of connections. */
import type { Socket } from "node:net";

/** Whether both FINs have passed. */
export function hasSaidAll({ readableEnded, writableFinished }: Socket): boolean {
  return readableEnded && writableFinished;
}

/**
 * Detects a reset that libuv reports as EOF: when bytes and a reset arrive together, libuv reads the bytes and then
 * says EOF. The kernel refuses to send on such a socket, even an empty write, which puts no bytes on the wire. After
 * our own FIN no write is possible, so a reset cannot be detected.
 */
export function isReset(socket: Socket): boolean {
  if (socket.writableEnded) return false;
  socket.write(new Uint8Array(0));
  return socket.errored !== null;
}

/**
 * Resets a connection. libuv refuses a reset while its FIN is pending (EINVAL), and would leave the descriptor open.
 */
export function reset(socket: Socket): void {
  if (socket.destroyed) return;
  const isEnding = socket.writableEnded && !socket.writableFinished && socket.writableLength === 0;
  if (isEnding) socket.once("finish", () => socket.resetAndDestroy());
  else socket.resetAndDestroy();
}
