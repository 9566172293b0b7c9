import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { DnsStreams } from "../../../broker/network/stub.ts";
import { exchange, framed, question, readReply, WorldStub } from "../../support/network/world-stub.ts";

const ASK_A = framed(question("a.example", "A", { id: 1 }));
const ASK_EVIL = framed(question("evil.example", "A", { id: 2 }));

/** The messages in a stream. */
function messages(bytes: Buffer): Buffer[] {
  const found: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + 2 + bytes.readUInt16BE(at);
    expect(end).toBeLessThanOrEqual(bytes.length);
    found.push(bytes.subarray(at + 2, end));
    at = end;
  }
  return found;
}

async function opened(port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.on("error", () => {});
  return socket;
}

describe("DNS over TCP", () => {
  test("questions of one connection are answered in their order, however they are cut", async () => {
    using world = await WorldStub.start(["a.example"]);
    const asked = Buffer.concat([ASK_A, ASK_EVIL, ASK_A]);
    const whole = await exchange(world.tcpPort, asked, 3 * 31);
    expect(messages(whole).map((message) => [readReply(message).id, readReply(message).rcode])).toEqual([
      [1, "NOERROR"],
      [2, "NXDOMAIN"],
      [1, "NOERROR"],
    ]);
    const socket = await opened(world.tcpPort);
    const got: Buffer[] = [];
    socket.on("data", (bytes: Buffer) => got.push(bytes));
    for (const byte of asked) {
      socket.write(Buffer.from([byte]));
      await sleep(1);
    }
    await expect.poll(() => Buffer.concat(got).length).toBe(whole.length);
    expect(Buffer.concat(got)).toEqual(whole);
    socket.destroy();
  });

  test("a client that ends its side after the question gets its answer, and the end", async () => {
    using world = await WorldStub.start(["a.example"]);
    const socket = await opened(world.tcpPort);
    socket.end(ASK_A);
    const got: Buffer[] = [];
    for await (const bytes of socket) got.push(bytes as Buffer);
    expect(messages(Buffer.concat(got)).map((message) => readReply(message).rcode)).toEqual(["NOERROR"]);
  });

  test.each([0, 1, 11, 4097, 65_535])("a message of %i bytes ends the connection", async (length) => {
    using world = await WorldStub.start(["a.example"]);
    const head = Buffer.from([length >> 8, length & 255]);
    expect(await exchange(world.tcpPort, Buffer.concat([head, Buffer.alloc(32)]))).toHaveLength(0);
    expect(await world.askName("a.example", "A")).toMatchObject({ rcode: "NOERROR" });
  });

  test("a malformed message is answered, and the connection goes on", async () => {
    using world = await WorldStub.start(["a.example"]);
    const bad = framed(question("a.example", "A", { id: 3 }).subarray(0, 20));
    const got = await exchange(world.tcpPort, Buffer.concat([bad, ASK_EVIL]), 14 + 32);
    expect(messages(got).map((message) => readReply(message).rcode)).toEqual(["FORMERR", "NXDOMAIN"]);
  });

  test("a client that asks and never reads is not read from any more", async () => {
    using world = await WorldStub.start(["a.example"]);
    const socket = await opened(world.tcpPort);
    socket.pause();
    const many = Buffer.concat(Array.from({ length: 2000 }, () => ASK_A));
    // Sent until the kernel's buffers and the stub's one chunk are full: then the stub has stopped reading.
    let writes = 0;
    while (writes < 2000 && (await accepted(socket, many))) writes++;
    expect(writes).toBeLessThan(2000);
    expect(await world.askName("a.example", "A")).toMatchObject({ rcode: "NOERROR" });
    socket.destroy();
  });

  test("of many connections 64 are served, and a place that was left is free again", async () => {
    using world = await WorldStub.start(["a.example"]);
    const sockets = await Promise.all(Array.from({ length: 64 }, async () => await opened(world.tcpPort)));
    expect(await exchange(world.tcpPort, ASK_A)).toHaveLength(0);
    expect(await world.askName("a.example", "A")).toMatchObject({ rcode: "NOERROR" });
    sockets[0]?.destroy();
    await expect.poll(async () => (await exchange(world.tcpPort, ASK_A, 1)).length).toBeGreaterThan(0);
    for (const socket of sockets) socket.destroy();
  });

  test("who says nothing, half a question, or reads no answer is idle, and who is idle is closed", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const faults: unknown[] = [];
    const streams = new DnsStreams(
      server,
      () => Buffer.alloc(298),
      (error) => faults.push(error),
      300,
    );
    const [silent, half, deaf] = [await opened(port), await opened(port), await opened(port)];
    half.write(ASK_A.subarray(0, 10));
    deaf.pause();
    deaf.write(Buffer.concat(Array.from({ length: 200_000 }, () => ASK_A)));
    const since = performance.now();
    await Promise.all([once(silent, "close"), once(half, "close")]);
    expect(performance.now() - since).toBeGreaterThan(250);
    // A paused socket learns of its end by writing.
    await expect.poll(() => deaf.destroyed, { timeout: 5000 }).toBe(true);
    expect(faults).toEqual([]);
    streams.close();
  });

  test("closing ends the connections and frees the ports; a second time does nothing", async () => {
    using world = await WorldStub.start(["a.example"]);
    const socket = await opened(world.tcpPort);
    const ended = once(socket, "close");
    world.stub.close();
    world.stub.close();
    await ended;
    await expect(once(connect(world.tcpPort, "127.0.0.1"), "connect")).rejects.toMatchObject({
      code: "ECONNREFUSED",
    });
  });
});

/** Did the kernel take the bytes within 200 ms? */
async function accepted(socket: Socket, bytes: Buffer): Promise<boolean> {
  const taken = new Promise<boolean>((resolve) => socket.write(bytes, () => resolve(true)));
  return await Promise.race([taken, sleep(200, false)]);
}
