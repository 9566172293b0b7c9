/** The TCP servers that speak neither HTTP nor TLS. */
import type { Socket } from "node:net";
import type { WitnessedConnection } from "./witness.ts";

/** What a server of SSH says before its client has said a word (RFC 4253, 4.2). */
export const SSH_GREETING = "SSH-2.0-substrate_test\r\n";

const CHUNK = Buffer.alloc(65_536, "substrate ");

/** Speaks first, then echoes. */
export function serveSsh(socket: Socket, connection: WitnessedConnection): void {
  socket.write(SSH_GREETING);
  serveEcho(socket, connection);
}

/** Gives everything back, and its end too. */
export function serveEcho(socket: Socket, connection: WitnessedConnection): void {
  socket.on("data", (bytes: Buffer) => connection.note(bytes));
  socket.pipe(socket);
}

/** Takes all that comes and, at its end, answers how many bytes that was. */
export function serveSink(socket: Socket, connection: WitnessedConnection): void {
  let taken = 0;
  socket.on("data", (bytes: Buffer) => {
    connection.note(bytes);
    taken += bytes.length;
  });
  socket.on("end", () => socket.end(`${taken}\n`));
}

/** Reads a line with a number and sends that many bytes. */
export function serveSource(socket: Socket, connection: WitnessedConnection): void {
  let asked = "";
  socket.on("data", (bytes: Buffer) => {
    connection.note(bytes);
    asked += bytes.toString("latin1");
    if (!asked.includes("\n")) return;
    socket.pause();
    send(socket, Number.parseInt(asked, 10));
  });
}

function send(socket: NodeJS.WritableStream, bytes: number): void {
  let left = bytes;
  const more = (): void => {
    while (left > 0) {
      const chunk = CHUNK.subarray(0, Math.min(left, CHUNK.length));
      left -= chunk.length;
      if (!socket.write(chunk)) {
        socket.once("drain", more);
        return;
      }
    }
    socket.end();
  };
  more();
}

/** Sends that many bytes and ends. */
export { send as sendBytes };
