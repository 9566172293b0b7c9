/** Servers that a world's commands keep running, and clients on the host. */
import { createServer, connect, type AddressInfo, type Socket } from "node:net";
import type { TestBroker, Ran } from "./broker.ts";
import { installationFor } from "./installation.ts";

/**
 * `node server.mjs HOST PORT WORD`: takes all that a client says, then says WORD and how many bytes that were. A client that
 * begins with `reset` is reset, and one that begins with `flood` is sent more than anybody holds.
 */
const SERVER = `
import { createServer } from "node:net";
const [host, port, word] = process.argv.slice(2);
createServer({ allowHalfOpen: true }, (socket) => {
  let bytes = 0;
  socket.on("error", () => undefined);
  socket.on("data", (chunk) => {
    if (bytes === 0 && chunk.toString().startsWith("reset")) return socket.resetAndDestroy();
    if (bytes === 0 && chunk.toString().startsWith("flood")) return flood(socket);
    bytes += chunk.length;
  });
  socket.on("end", () => socket.end(word + " " + bytes));
}).listen({ host, port: Number(port), ipv6Only: true }, () => console.log("ready"));
function flood(socket) {
  const block = Buffer.alloc(1 << 20);
  const more = () => { while (!socket.destroyed && socket.write(block)); };
  socket.on("drain", more);
  more();
}
`;

/** Keeps such a server running in an agent's world; settles when it listens. */
export async function keepServer(
  broker: TestBroker,
  agent: string,
  port: number,
  word: string,
  host = "127.0.0.1",
): Promise<Ran> {
  const { node } = await installationFor(broker.actor);
  broker.write(`${broker.project}/server.mjs`, SERVER);
  const out = `/tmp/${word}-${port}`;
  const wait = `i=0; until grep -q ready ${out}; do i=$((i+1)); [ $i -lt 500 ] || exit 1; sleep 0.02; done`;
  const cmd = `'${node}' server.mjs ${host} ${port} ${word} > ${out} 2>&1 & ${wait}`;
  const ran = await broker.run({ agent_id: agent, cmd, background: "keep" });
  if (ran.exit !== 0) throw new Error(`The server did not start: ${ran.stdout}${ran.stderr}`);
  return ran;
}

/** What the server says to one who says `said`; the errno name where the connection fails. */
export function talk(port: number, said = "hello", host = "127.0.0.1"): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, allowHalfOpen: true });
    let heard = "";
    socket.on("data", (bytes: Buffer) => {
      heard += bytes.toString();
    });
    socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    socket.once("end", () => resolve(heard));
    socket.setTimeout(10_000, () => socket.destroy(new Error("timed out")));
    socket.end(said);
  });
}

/** A port of the host on which nobody listens. */
export async function freePort(): Promise<number> {
  const held = await holdPort(0);
  held.free();
  return held.port;
}

/** A program of the host's that has a port: this one. */
export async function holdPort(
  wanted: number,
  onConnection: (socket: Socket) => void = (socket) => socket.destroy(),
): Promise<{ readonly port: number; readonly free: () => void }> {
  const server = createServer(onConnection);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host: "127.0.0.1", port: wanted }, resolve);
  });
  return { port: (server.address() as AddressInfo).port, free: () => void server.close() };
}
