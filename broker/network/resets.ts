/** How connections end, and how they are ended. */
import type { Socket } from "node:net";

/** Both FINs have passed. */
export function hasSaidAll({ readableEnded, writableFinished }: Socket): boolean {
  return readableEnded && writableFinished;
}

/**
 * When bytes and a reset come together, libuv reads the bytes and then says EOF. The kernel knows better: it refuses to
 * send on such a socket, even nothing at all, which it would not put on the wire. Where our own FIN has gone out before
 * nothing can be sent, and it cannot be told.
 */
export function isReset(socket: Socket): boolean {
  if (socket.writableEnded) return false;
  socket.write(new Uint8Array(0));
  return socket.errored !== null;
}

/** libuv refuses a reset while its FIN is on the way (EINVAL), and would leave the descriptor open. */
export function reset(socket: Socket): void {
  if (socket.destroyed) return;
  const isEnding = socket.writableEnded && !socket.writableFinished && socket.writableLength === 0;
  if (isEnding) socket.once("finish", () => socket.resetAndDestroy());
  else socket.resetAndDestroy();
}
