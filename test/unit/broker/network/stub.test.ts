import { hostname } from "node:os";
import { Resolver } from "node:dns/promises";
import { once } from "node:events";
import { type AddressInfo, type Socket, connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { DnsStreams, type Standing } from "../../../../broker/network/stub.ts";
import { WorldStub, exchange, framed, question, readReply } from "../../../support/network/world-stub.ts";
import { leastWaitMs } from "../../../support/processes/cost.ts";

const ALLOWED = ["a.example", "b.example"];

describe("what a world's DNS says", () => {
  test("an allowed name has the one address that stands for it", async () => {
    using world = await WorldStub.start(ALLOWED);
    const reply = await world.askName("a.example", "A");
    expect(reply).toMatchObject({
      id: 0x1234,
      type: "response",
      rcode: "NOERROR",
      flag_rd: true,
      flag_ra: true,
    });
    expect(reply.questions).toEqual([{ name: "a.example", type: "A", class: "IN" }]);
    expect(reply.answers).toEqual([
      { name: "a.example", type: "A", class: "IN", ttl: 5, flush: false, data: "198.18.0.1" },
    ]);
    expect(reply.flag_tc).toBe(false);
    expect((await world.askName("b.example", "A")).answers).toMatchObject([{ data: "198.18.0.2" }]);
    expect((await world.askName("a.example", "A")).answers).toMatchObject([{ data: "198.18.0.1" }]);
    expect(world.addresses.nameOf("198.18.0.1")).toBe("a.example");
    expect(world.refused).toEqual([]);
  });

  test.each(["AAAA", "MX", "TXT", "SRV", "NS", "SOA", "CNAME", "CAA", "ANY", "UNKNOWN_64", "UNKNOWN_65"])(
    "an allowed name has no %s, and may still be asked for an address",
    async (type) => {
      using world = await WorldStub.start(ALLOWED);
      const reply = await world.askName("a.example", type);
      expect(reply).toMatchObject({ rcode: "NOERROR", answers: [], authorities: [], flag_ra: true });
      expect(world.refused).toEqual([]);
    },
  );

  test("any other name does not exist, for no type, and is told of", async () => {
    using world = await WorldStub.start(ALLOWED);
    for (const name of ["evil.example", "evila.example", "a.example.evil", "sub.a.example", "example"])
      expect(await world.askName(name, "A")).toMatchObject({
        rcode: "NXDOMAIN",
        answers: [],
        authorities: [],
      });
    expect(await world.askName("c2VjcmV0.evil.example", "TXT")).toMatchObject({ rcode: "NXDOMAIN" });
    expect(world.refused).toEqual([
      "A evil.example",
      "A evila.example",
      "A a.example.evil",
      "A sub.a.example",
      "A example",
      "TXT c2vjcmv0.evil.example",
    ]);
    expect(world.addresses.nameOf("198.18.0.1")).toBeUndefined();
  });

  test("case is echoed as it came, and makes no other name", async () => {
    using world = await WorldStub.start(ALLOWED);
    const reply = await world.askName("A.eXaMpLe", "A");
    expect(reply.questions).toMatchObject([{ name: "A.eXaMpLe" }]);
    expect(reply.answers).toMatchObject([{ name: "A.eXaMpLe", data: "198.18.0.1" }]);
    expect((await world.askName("a.example", "A")).answers).toMatchObject([{ data: "198.18.0.1" }]);
  });

  test("names are asked for anew each time, so a changed rule counts at once", async () => {
    const allowed = ["a.example"];
    using world = await WorldStub.start(allowed);
    expect(await world.askName("b.example", "A")).toMatchObject({ rcode: "NXDOMAIN" });
    allowed.splice(0, 1, "b.example");
    expect(await world.askName("b.example", "A")).toMatchObject({ rcode: "NOERROR" });
    expect(await world.askName("a.example", "A")).toMatchObject({ rcode: "NXDOMAIN" });
  });

  test("localhost and all below it are the world itself", async () => {
    using world = await WorldStub.start([]);
    for (const name of ["localhost", "LOCALHOST", "app.localhost", hostname()])
      expect((await world.askName(name, "A")).answers).toMatchObject([{ name, data: "127.0.0.1" }]);
    expect(await world.askName("localhost", "AAAA")).toMatchObject({ rcode: "NOERROR", answers: [] });
    expect(await world.askName("notlocalhost", "A")).toMatchObject({ rcode: "NXDOMAIN" });
    expect(await world.askName("localhost.evil", "A")).toMatchObject({ rcode: "NXDOMAIN" });
  });

  test("a reverse look-up finds nobody, and is only told of when it is not for our own addresses", async () => {
    using world = await WorldStub.start(ALLOWED);
    for (const name of [
      "1.0.18.198.in-addr.arpa",
      "1.0.19.198.in-addr.arpa",
      "1.0.0.127.in-addr.arpa",
      "8.8.8.8.in-addr.arpa",
    ])
      expect(await world.askName(name, "PTR")).toMatchObject({ rcode: "NXDOMAIN" });
    expect(world.refused).toEqual(["PTR 8.8.8.8.in-addr.arpa"]);
  });

  test("a service of an allowed name is missing, but nothing is held back", async () => {
    using world = await WorldStub.start(ALLOWED);
    expect(await world.askName("_http._tcp.a.example", "SRV")).toMatchObject({ rcode: "NXDOMAIN" });
    expect(await world.askName("_http._tcp.evil.example", "SRV")).toMatchObject({ rcode: "NXDOMAIN" });
    expect(await world.askName("x._tcp.a.example", "SRV")).toMatchObject({ rcode: "NXDOMAIN" });
    expect(world.refused).toEqual(["SRV _http._tcp.evil.example", "SRV x._tcp.a.example"]);
  });

  test("when addresses are used up the server fails: the name is not said to be missing", async () => {
    using world = await WorldStub.start(ALLOWED, { addressOf: () => null });
    expect(await world.askName("a.example", "A")).toMatchObject({ rcode: "SERVFAIL", answers: [] });
    expect(await world.askName("a.example", "AAAA")).toMatchObject({ rcode: "NOERROR" });
    expect(await world.askName("evil.example", "A")).toMatchObject({ rcode: "NXDOMAIN" });
  });

  test.each(["at once", "later"])(
    "a name is, for both families, what the host says of it %s",
    async (when) => {
      const standings = { "a.example": "missing", "b.example": "empty", "c.example": "unknown" } as const;
      const standingOf = (name: string): Standing => standings[name as keyof typeof standings] ?? "found";
      const standing = (name: string) =>
        when === "at once" ? standingOf(name) : sleep(20).then(() => standingOf(name));
      using world = await WorldStub.start([...Object.keys(standings), "d.example"], { standing });
      const rcodes = { "a.example": "NXDOMAIN", "b.example": "NOERROR", "c.example": "SERVFAIL" };
      for (const [name, rcode] of Object.entries(rcodes))
        for (const type of ["A", "AAAA"])
          expect(await world.askName(name, type), `${name} ${type}`).toMatchObject({ rcode, answers: [] });
      const asked = ["a.example", "d.example", "c.example"].map((name) => framed(question(name, "A")));
      let bytes = await exchange(world.tcpPort, Buffer.concat(asked));
      const rcodesInOrder: string[] = [];
      for (; bytes.length > 0; bytes = bytes.subarray(2 + bytes.readUInt16BE(0)))
        rcodesInOrder.push(readReply(bytes.subarray(2, 2 + bytes.readUInt16BE(0))).rcode);
      expect(rcodesInOrder).toEqual(["NXDOMAIN", "NOERROR", "SERVFAIL"]);
      expect(world.refused).toEqual([]);
      expect(world.addresses.nameOf("198.18.0.2")).toBeUndefined();
    },
  );

  test("a host that cannot be asked is told of, and answered with a failure", async () => {
    const wrong = new Error("wrong");
    using world = await WorldStub.start(ALLOWED, { standing: () => Promise.reject(wrong) });
    expect(await world.askName("a.example", "A")).toMatchObject({ rcode: "SERVFAIL", answers: [] });
    expect(world.faults).toEqual([wrong]);
  });

  test("rules that throw are answered with a failure, and the next question as ever", async () => {
    const wrong = new Error("wrong");
    using world = await WorldStub.start(ALLOWED, {
      decide: (name) => {
        if (name === "b.example") throw wrong;
        return true;
      },
    });
    expect(await world.askName("b.example", "A")).toMatchObject({
      id: 0x1234,
      type: "response",
      rcode: "SERVFAIL",
    });
    expect(world.faults).toEqual([wrong]);
    expect(await world.askName("a.example", "A")).toMatchObject({ rcode: "NOERROR" });
  });
});

describe("what a real client makes of it (c-ares)", () => {
  async function client(): Promise<[WorldStub, Resolver]> {
    const world = await WorldStub.start(ALLOWED);
    const resolver = new Resolver({ timeout: 2000, tries: 1 });
    resolver.setServers([`127.0.0.1:${world.udpPort}`]);
    return [world, resolver];
  }

  test("an allowed name has an address of one family and no error of another kind", async () => {
    const [world, resolver] = await client();
    using _ = world;
    expect(await resolver.resolve4("a.example", { ttl: true })).toEqual([{ address: "198.18.0.1", ttl: 5 }]);
    await expect(resolver.resolve6("a.example")).rejects.toMatchObject({ code: "ENODATA" });
    await expect(resolver.resolveMx("a.example")).rejects.toMatchObject({ code: "ENODATA" });
  });

  test("any other name is not found, within a tenth of a second", async () => {
    const [world, resolver] = await client();
    using _ = world;
    const wait = await leastWaitMs(async () => {
      await expect(resolver.resolve4("evil.example")).rejects.toMatchObject({ code: "ENOTFOUND" });
      await expect(resolver.resolveTxt("c2VjcmV0.evil.example")).rejects.toMatchObject({ code: "ENOTFOUND" });
    });
    expect(wait).toBeLessThan(100);
  });
});

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

/** Settles at the socket's end, reset or not: the server may close before it has read. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once("close", () => resolve()));
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

  test("hundreds of questions in advance are all answered, of each connection in order, and another's between them", async () => {
    using world = await WorldStub.start(["a.example"]);
    const asked = Buffer.concat(
      Array.from({ length: 700 }, (_, id) => framed(question("a.example", "A", { id }))),
    );
    const size = 700 * (await exchange(world.tcpPort, ASK_A, 31)).length;
    const many = [1, 2, 3].map(async () => await exchange(world.tcpPort, asked, size));
    expect(await world.askName("a.example", "A")).toMatchObject({ rcode: "NOERROR" });
    for (const got of await Promise.all(many))
      expect(messages(got).map((message) => readReply(message).id)).toEqual([...Array(700).keys()]);
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
    await Promise.all([silent, half].map(closed));
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
