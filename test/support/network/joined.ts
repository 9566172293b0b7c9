/** A client, the pump and a server on loopback, as a world, the broker and the outside are joined. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import { type Allowance, allowanceOf } from "../../../broker/network/allowance.ts";
import type { Bound } from "../../../broker/network/bound.ts";
import type { FirstBytesReader } from "../../../broker/network/first-bytes.ts";
import { Pump } from "../../../broker/network/pump.ts";
import { ReadBuffers } from "../../../broker/network/read-buffers.ts";
import { UpstreamSocket } from "../../../broker/network/upstream-socket.ts";

export type Joined = {
  /** What runs in the world. */
  readonly client: Socket;
  /** The broker's end of the client's connection. */
  readonly world: Socket;
  readonly upstream: UpstreamSocket;
  readonly server: Socket;
  readonly pump: Pump;
};

/** Listens on loopback; what it accepted is destroyed with the test. */
async function listen(allowHalfOpen: boolean, onSocket: (socket: Socket) => void): Promise<number> {
  const sockets: Socket[] = [];
  const server: Server = createServer({ allowHalfOpen }, (socket) => {
    sockets.push(socket);
    socket.on("error", () => undefined);
    onSocket(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** Joins many clients to one server, one pump each. */
export async function joiner(buffers = new ReadBuffers()): Promise<(parts?: JoinParts) => Promise<Joined>> {
  const accepted: Socket[] = [];
  const served: Socket[] = [];
  // A socket that another process hands over is born without half-open ends, too.
  const gateway = await listen(false, (socket) => accepted.push(socket));
  const outside = await listen(true, (socket) => served.push(socket));
  return async ({ allowance = allowanceOf([], []), firstBytes, held } = {}) => {
    const client = connect({ port: gateway, host: "127.0.0.1", allowHalfOpen: true });
    onTestFinished(() => void client.destroy());
    client.on("error", () => undefined);
    const upstream = new UpstreamSocket(buffers).connect({ port: outside, host: "127.0.0.1" });
    await Promise.all([once(client, "connect"), once(upstream, "connect")]);
    // As whoever records the connection does; Node remembers the address from then on.
    if (upstream.remoteAddress === undefined) throw new Error("The server was gone at once");
    const [world, server] = [await next(accepted), await next(served)];
    const pump = new Pump({ world, upstream, allowance, firstBytes, held });
    return { client, world, upstream, server, pump };
  };
}

type JoinParts = {
  readonly allowance?: Allowance;
  readonly firstBytes?: FirstBytesReader;
  readonly held?: Bound;
};

export async function join(parts: JoinParts = {}): Promise<Joined> {
  return (await joiner())(parts);
}

/** All that a socket still says, until FIN; or how it broke. */
export async function readAll(socket: Socket): Promise<Buffer> {
  const parts: Buffer[] = [];
  socket.on("data", (bytes) => parts.push(bytes));
  await once(socket, "end");
  return Buffer.concat(parts);
}

/**
 * The code of the error that a socket ends with; undefined when it ends without. The sockets of the tests are Node's
 * too: where bytes and a reset come together it shows an end, and only the missing peer tells.
 */
export function brokenBy(socket: Socket): Promise<string | undefined> {
  return new Promise((resolve) => {
    socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code));
    socket.once("end", () => {
      if (!socket.writableEnded && socket.remotePort === undefined) resolve("ECONNRESET");
    });
    socket.once("close", () => resolve(undefined));
  });
}

/** When something has come true; the test's own time-out ends what never does. */
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 5));
}

async function next(sockets: Socket[]): Promise<Socket> {
  await until(() => sockets.length > 0);
  const socket = sockets.shift();
  if (socket === undefined) throw new Error("Nothing was accepted");
  return socket;
}
