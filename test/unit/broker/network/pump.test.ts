import { execFile } from "node:child_process";
import { type Hash, createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { LARGE_BUFFER, ReadBuffers, SMALL_BUFFER } from "../../../../broker/network/read-buffers.ts";
import { type Joined, brokenBy, join, joiner, readAll, until } from "../../../support/network/joined.ts";

const MIB = 1024 * 1024;

test("both sides are asked from time to time whether their other end is still there", async () => {
  const { world, upstream } = await join();
  for (const { localPort, remotePort } of [world, upstream]) {
    const { stdout } = await promisify(execFile)("ss", [
      "-tnoH",
      `sport = :${localPort} and dport = :${remotePort}`,
    ]);
    expect(stdout).toContain("timer:(keepalive");
  }
});

describe("what both sides say", () => {
  test("arrives unchanged and is counted, in messages and in bulk", async () => {
    const { client, server, pump } = await join();
    server.pipe(server);
    for (const size of [1, 100, 70_000, 3 * MIB]) {
      const sent = randomBytes(size);
      client.write(sent);
      expect(hash(await readExactly(client, size))).toBe(hash(sent));
    }
    client.end();
    const total = 1 + 100 + 70_000 + 3 * MIB;
    expect(await pump.ended).toEqual({
      egress: total,
      ingress: total,
      ended: "closed",
      reason: undefined,
      refused: undefined,
    });
  });

  test("arrives unchanged when the reader is slow", async () => {
    const { client, server } = await join();
    const sent = randomBytes(24 * MIB);
    server.end(sent);
    const received = createHash("sha256");
    for await (const bytes of client) {
      received.update(bytes as Buffer);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(received.digest("hex")).toBe(hash(sent));
  });

  test("reaches the world first where the server begins", async () => {
    const { client, server } = await join();
    server.write("220 ready\r\n");
    expect(String(await readExactly(client, 11))).toBe("220 ready\r\n");
  });
});

describe("an end", () => {
  test("of the client's side lets the server answer afterwards", async () => {
    const { client, server, pump } = await join();
    client.end("question");
    expect(String(await readAll(server))).toBe("question");
    server.end("answer");
    expect(String(await readAll(client))).toBe("answer");
    expect(await pump.ended).toMatchObject({ egress: 8, ingress: 6, ended: "closed" });
  });

  test("of the server's side lets the client go on", async () => {
    const { client, server, pump } = await join();
    server.end("greeting");
    expect(String(await readAll(client))).toBe("greeting");
    client.end("farewell");
    expect(String(await readAll(server))).toBe("farewell");
    expect(await pump.ended).toMatchObject({ ended: "closed" });
  });

  test("comes after all that was said before it", async () => {
    const { client, server } = await join();
    const sent = randomBytes(8 * MIB);
    client.end(sent);
    expect(hash(await readAll(server))).toBe(hash(sent));
  });
});

describe("a reset", () => {
  test.each(["client", "server"] as const)("of the %s passes on as a reset", async (which) => {
    const { client, server, pump } = await join();
    client.write("x");
    await once(server, "data");
    const [one, other] = which === "client" ? [client, server] : [server, client];
    const broken = brokenBy(other);
    other.resume();
    one.resetAndDestroy();
    expect(await broken).toBe("ECONNRESET");
    expect(await pump.ended).toMatchObject({ ended: "reset", reason: "ECONNRESET", egress: 1, ingress: 0 });
  });

  test("that comes together with the last bytes is not taken for an end", async () => {
    for (const which of ["client", "server"] as const) {
      const joined = await join();
      joined[which].write(Buffer.alloc(1000), () => joined[which].resetAndDestroy());
      expect(await joined.pump.ended).toMatchObject({ ended: "reset", reason: "ECONNRESET" });
    }
  });

  test("after one side has ended still reaches the other", async () => {
    const { client, server, pump } = await join();
    client.end("question");
    await readAll(server);
    const broken = brokenBy(client);
    client.resume();
    server.resetAndDestroy();
    expect(await broken).toBe("ECONNRESET");
    expect(await pump.ended).toMatchObject({ ended: "reset" });
  });

  test.each([
    ["world", "server"],
    ["upstream", "client"],
  ] as const)(
    "follows for the other side when the broker's own %s socket is destroyed",
    async (own, other) => {
      const joined = await join();
      joined[other].resume();
      const broken = brokenBy(joined[other]);
      joined[own].destroy();
      expect(await broken).toBe("ECONNRESET");
      expect(await joined.pump.ended).toMatchObject({ ended: "reset" });
    },
  );
});

describe("a cut", () => {
  test("resets both sides at once, and only the first reason counts", async () => {
    const { client, server, pump } = await join();
    const broken = Promise.all([brokenBy(client), brokenBy(server)]);
    client.resume();
    server.resume();
    pump.cut("the policy changed");
    pump.cut("again");
    expect(await pump.ended).toMatchObject({ ended: "cut", reason: "the policy changed" });
    expect(await broken).toEqual(["ECONNRESET", "ECONNRESET"]);
  });

  test.each([0, 1, 2, 3])(
    "%i ticks after a FIN still resets the client, and leaves no socket open",
    async (ticks) => {
      const { client, world, upstream, pump } = await join();
      const broken = brokenBy(client);
      const isClosed = once(upstream, "close");
      client.resume();
      client.end();
      await once(world, "end");
      for (let tick = 0; tick < ticks; tick += 1)
        await new Promise<void>((resolve) => process.nextTick(resolve));
      expect([upstream.writableEnded, upstream.writableFinished]).toEqual([true, false]);
      pump.cut("the policy changed");
      expect(await broken).toBe("ECONNRESET");
      await isClosed;
    },
  );
});

describe("a reader that stops", () => {
  test("stops the server: the broker holds two buffers and no more", async () => {
    const { client, server, world, upstream, pump } = await join();
    client.pause();
    const rest = flood(server);
    await until(() => world.writableLength > 0 && pump.ingress === upstream.bytesRead);
    await steady(() => pump.ingress);
    expect(world.writableLength).toBeLessThanOrEqual(2 * LARGE_BUFFER);
    expect(server.writableLength).toBeGreaterThan(0);
    client.resume();
    await rest.isWritten;
    await until(() => pump.ingress === rest.size);
    expect(world.writableLength).toBeLessThanOrEqual(2 * LARGE_BUFFER);
  });

  test("stops the client: the broker holds one read and no more", async () => {
    const { client, server, world, upstream, pump } = await join();
    server.pause();
    const rest = flood(client);
    await until(() => upstream.writableLength > 0);
    await steady(() => pump.egress);
    expect(world.isPaused()).toBe(true);
    expect(upstream.writableLength + world.readableLength).toBeLessThanOrEqual(256 * 1024);
    expect(client.writableLength).toBeGreaterThan(0);
    server.resume();
    await rest.isWritten;
    await until(() => pump.egress === rest.size);
  });
});

/** More than all the kernel's buffers of two connections hold. */
function flood(socket: NodeJS.WritableStream): { readonly size: number; readonly isWritten: Promise<void> } {
  const bytes = Buffer.alloc(64 * MIB);
  return {
    size: bytes.length,
    isWritten: new Promise((resolve) => socket.write(bytes, () => resolve())),
  };
}

/** Until a count stands still. */
async function steady(count: () => number): Promise<void> {
  for (let last = -1; last !== count(); ) {
    last = count();
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

function readExactly(socket: NodeJS.ReadableStream, size: number): Promise<Buffer> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    let length = 0;
    const onData = (bytes: Buffer): void => {
      parts.push(bytes);
      length += bytes.length;
      if (length < size) return;
      socket.off("data", onData);
      resolve(Buffer.concat(parts));
    };
    socket.on("data", onData);
  });
}

function hash(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

test.each([0, 1, 3])(
  "downloads that stall and go on stay whole with %i large buffers for all of them",
  async (most) => {
    const buffers = new ReadBuffers({ most, kept: 1 });
    const connect = await joiner(buffers);
    const joined: Joined[] = [];
    for (let index = 0; index < 6; index += 1) joined.push(await connect());
    let highest = 0;
    const downloads = joined.map(async ({ client, server }, index) => {
      const sent = createHash("sha256");
      const sending = sendPieces(server, sent, 40);
      const received = createHash("sha256");
      for await (const bytes of client) {
        received.update(bytes as Buffer);
        highest = Math.max(highest, buffers.lent);
        if (Math.random() < 0.05) await delay(index);
      }
      await sending;
      expect(received.digest("hex")).toBe(sent.digest("hex"));
    });
    await Promise.all(downloads);
    expect(highest).toBe(most);
    for (const { client } of joined) client.end();
    await until(() => buffers.lent === 0);
  },
);

test("a download that breaks off while its reader stands still gives its buffers back", async () => {
  for (const how of ["cut", "client", "server"] as const) {
    const buffers = new ReadBuffers();
    const { client, server, world, pump } = await (await joiner(buffers))();
    server.write(Buffer.alloc(64 * LARGE_BUFFER));
    const isStuck = (): boolean => world.writableLength > 0 && buffers.lent > 0;
    for (;;) {
      client.pause();
      await delay(20);
      if (isStuck()) break;
      // What came last on a busy machine was small, and so were the buffers: the reader goes on for a moment.
      client.resume();
      await delay(1);
    }
    if (how === "cut") pump.cut("enough");
    else if (how === "client") client.resetAndDestroy();
    else {
      server.resetAndDestroy();
      // Nobody looks at the server's side while its bytes have nowhere to go.
      client.resume();
    }
    await pump.ended;
    await until(() => buffers.lent === 0);
  }
});

test("a large buffer is lent only so often, and kept only so often", () => {
  const buffers = new ReadBuffers({ most: 2, kept: 1 });
  const taken = [buffers.take("large"), buffers.take("large"), buffers.take("large"), buffers.take("small")];
  expect(taken.map(({ length }) => length)).toEqual([LARGE_BUFFER, LARGE_BUFFER, SMALL_BUFFER, SMALL_BUFFER]);
  for (const buffer of taken) buffers.giveBack(buffer);
  expect(buffers.lent).toBe(0);
  const again = [buffers.take("large"), buffers.take("large")];
  expect(again[0]).toBe(taken[0]);
  expect(taken).not.toContain(again[1]);
});

/** Pieces of all sizes, so that buffers grow and shrink. */
async function sendPieces(socket: Socket, hash: Hash, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const bytes = randomBytes(
      index % 5 === 0 ? 1 + Math.floor(Math.random() * 2_000_000) : 1 + ((index * 997) % 20_000),
    );
    hash.update(bytes);
    await new Promise<void>((resolve) => socket.write(bytes, () => resolve()));
    if (index % 7 === 0) await delay(1);
  }
  socket.end();
}
