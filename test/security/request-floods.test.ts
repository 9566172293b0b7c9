/** Requests that never end, and answers that nobody reads: the broker keeps a bounded part of each, and others go on. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import type { ErrorReply } from "../../schemas/generated/types.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { actors } from "../support/users/users.ts";

const MI = 1024 * 1024;
const CLIENTS = 80;

/** 80 of 9 MiB took 800 MiB before there was a bound; a broker at rest has about 100. */
const MOST_MIB = 450;

describe.each(actors().slice(0, 1))(
  "clients that send long requests and never end them, as $kind",
  (actor) => {
    const open: (() => void)[] = [];
    afterEach(() => open.splice(0).forEach((close) => close()));

    test.each([
      ["bodies", body],
      ["messages of WebSockets", message],
    ])(
      "%s: the broker keeps a bounded part, and answers others",
      async (_what, send) => {
        const broker = await TestBroker.start(actor, { policies: { default: "id: default\nname: x\n" } });
        try {
          const socket = join(broker.home, "sock/agent.sock");
          await Promise.all(Array.from({ length: CLIENTS }, () => send(socket, open)));
          const long = { cmd: "wc -c", stdin_b64: "A".repeat(4 * MI) };
          // A request that came in time takes room from a client, which is refused and must be followed by another.
          const answer = async (): Promise<ErrorReply["error"] | undefined> => {
            const { error } = (await broker.post(long)).document as Partial<ErrorReply>;
            if (error === undefined) await send(socket, open);
            return error;
          };
          await expect.poll(answer, { timeout: 30_000 }).toMatchObject({ code: "busy" });
          expect(resident(broker)).toBeLessThan(MOST_MIB);
          expect(await broker.run("echo short")).toMatchObject({ stdout: "short\n" });
          open.splice(0).forEach((close) => close());
          await expect
            .poll(() => broker.run(long).catch(() => null), { timeout: 30_000 })
            .toMatchObject({ stdout: `${3 * MI}\n` });
        } finally {
          await broker.stop();
        }
      },
      120_000,
    );

    test("sizes and signals by the million: the broker stays small and answers, and the last ones count", async () => {
      const broker = await TestBroker.start(actor, { policies: { default: "id: default\nname: x\n" } });
      const cmd = `trap 'stty size; exit 7' INT; echo ready; while :; do sleep 0.05; done`;
      const stream = connect(join(broker.home, "sock/agent.sock"));
      open.push(() => stream.destroy());
      let output = "";
      stream.on("error", () => {}).on("data", (bytes: Buffer) => (output += bytes.toString("latin1")));
      try {
        stream.write(
          "GET /v1/stream HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n" +
            "sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
        );
        stream.write(frame({ agent_id: "me", cwd: broker.project, cmd, pty: true, cols: 80, rows: 24 }));
        await expect.poll(() => output, { timeout: 10_000 }).toContain("ready");
        const size = frame({ type: "resize", cols: 80, rows: 24 });
        const signal = frame({ type: "signal", signal: "SIGWINCH" });
        const many = Buffer.concat(Array.from({ length: 2000 }, () => [size, signal]).flat());
        for (let count = 0; count < 700; count += 1)
          await new Promise((resolve) => stream.write(many, resolve));
        expect(resident(broker)).toBeLessThan(MOST_MIB);
        expect(await broker.run("echo short")).toMatchObject({ stdout: "short\n" });
        stream.write(frame({ type: "resize", cols: 101, rows: 33 }));
        stream.write(frame({ type: "signal", signal: "SIGINT" }));
        await expect.poll(() => output, { timeout: 10_000 }).toContain('"exit":7');
        expect(output).toContain("33 101");
      } finally {
        await broker.stop();
      }
    }, 60_000);
  },
);

describe.each(actors().slice(0, 1))("WebSockets that send what has no content, as $kind", (actor) => {
  let broker: TestBroker;
  const open: (() => void)[] = [];
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: "id: default\nname: x\n" } });
  });
  afterEach(() => open.splice(0).forEach((close) => close()));
  afterAll(() => broker.stop());

  async function opened(): Promise<WebSocket & { readonly _socket: Socket }> {
    const stream = new WebSocket(`ws+unix://${join(broker.home, "sock/agent.sock")}:/v1/stream`);
    stream.on("error", () => {});
    open.push(() => stream.terminate());
    await once(stream, "open");
    return stream as WebSocket & { readonly _socket: Socket };
  }

  /** An empty, masked frame. */
  const empty = (first: number): Buffer => Buffer.from([first, 0x80, 0, 0, 0, 0]);

  test.each([
    ["pongs", 0x8a],
    ["pings", 0x89],
  ])("a flood of %s ends its connection, and some are answered", async (_what, first) => {
    const floods = await Promise.all(Array.from({ length: 10 }, opened));
    const closed = floods.map((stream) => new Promise((resolve) => stream.once("close", resolve)));
    const many = Buffer.concat(Array.from({ length: 10_000 }, () => empty(first)));
    for (const stream of floods) stream._socket.write(many);
    await Promise.all(closed);
    const client = await opened();
    let pongs = 0;
    client.on("pong", () => (pongs += 1));
    for (let count = 0; count < 20; count += 1) client.ping();
    await expect.poll(() => pongs).toBe(20);
    client.send(JSON.stringify({ agent_id: "me", cwd: broker.project, cmd: "echo hello" }));
    const [last] = (await once(client, "close")) as [number];
    expect(last).toBe(1000);
  });

  test("a message in more than a thousand parts ends its connection, one in a hundred is taken", async () => {
    const request = JSON.stringify({ agent_id: "me", cwd: broker.project, cmd: "true" });
    const split = async (parts: number): Promise<number> => {
      const stream = await opened();
      const text = request.padEnd(parts);
      for (let at = 0; at < parts; at += 1)
        stream.send(at === parts - 1 ? text.slice(at) : text.slice(at, at + 1), { fin: at === parts - 1 });
      const [code] = (await once(stream, "close")) as [number];
      return code;
    };
    expect(await split(100)).toBe(1000);
    expect(await split(5000)).not.toBe(1000);
  });
});

describe.each(actors().slice(0, 1))("clients that read no answer, as $kind", (actor) => {
  const LIST = "GET /v1/spans?limit=1000 HTTP/1.1\r\nhost: x\r\n\r\n";
  let broker: TestBroker;
  const open: Socket[] = [];
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: "id: default\nname: x\n" } });
    // Their list is longer than what the kernel takes from the broker for a client that does not read.
    for (let count = 0; count < 250; count += 1) await broker.run(`echo ${count}`);
  });
  afterEach(() => open.splice(0).forEach((socket) => socket.destroy()));
  afterAll(() => broker.stop());

  function connected(): Socket {
    const socket = connect(join(broker.home, "sock/agent.sock"));
    open.push(socket.on("error", () => {}));
    return socket;
  }

  test("thousands of requests in advance end their connection; some are all answered, in order", async () => {
    const floods = Array.from({ length: 8 }, () => connected().pause());
    const closed = floods.map((socket) => new Promise((resolve) => socket.once("close", resolve)));
    for (const socket of floods) socket.write(LIST.repeat(5000));
    expect(await broker.run("echo short")).toMatchObject({ stdout: "short\n" });
    expect((await broker.operator("GET", "/v1/health")).status).toBe(200);
    for (const socket of floods) socket.resume();
    await Promise.all(closed);
    expect(resident(broker)).toBeLessThan(MOST_MIB);
    const client = connected();
    let text = "";
    client.on("data", (bytes: Buffer) => (text += bytes.toString("latin1")));
    for (let count = 0; count < 8; count += 1)
      client.write(`GET /v1/none-${count} HTTP/1.1\r\nhost: x\r\n\r\n`);
    await expect
      .poll(() =>
        [...text.matchAll(/Unknown call [^ ]*GET \/v1\/none-(\d)/g)].map(([, count]) => count).join(""),
      )
      .toBe("01234567");
  }, 60_000);

  test("many of one long answer each: the broker keeps a bounded part, and answers others", async () => {
    for (let count = 0; count < 200; count += 1) connected().pause().write(LIST);
    const list = async () => await broker.call("GET", "/v1/spans?limit=1000");
    await expect.poll(async () => (await list()).status, { timeout: 30_000 }).toBe(503);
    expect((await list()).document).toMatchObject({ error: { code: "busy", retry_after_ms: 1000 } });
    expect(resident(broker)).toBeLessThan(MOST_MIB);
    expect(await broker.run("echo short")).toMatchObject({ stdout: "short\n" });
    open.splice(0).forEach((socket) => socket.destroy());
    await expect.poll(async () => (await list()).status, { timeout: 30_000 }).toBe(200);
  }, 60_000);
});

async function body(path: string, open: (() => void)[]): Promise<void> {
  const socket = connect(path);
  socket.on("error", () => {});
  open.push(() => socket.destroy());
  socket.write(`POST /v1/execute HTTP/1.1\r\nhost: x\r\ncontent-length: ${10 * MI}\r\n\r\n`);
  await taken(socket, Buffer.alloc(9 * MI, 34));
}

async function message(path: string, open: (() => void)[]): Promise<void> {
  const stream = new WebSocket(`ws+unix://${path}:/v1/stream`);
  stream.on("error", () => {});
  open.push(() => stream.terminate());
  await once(stream, "open");
  stream.send(Buffer.alloc(9 * MI, 34), { fin: false, binary: false });
  await sleep(1000);
}

/** A text message of a client, masked with zeros. */
function frame(message: object): Buffer {
  const text = Buffer.from(JSON.stringify(message));
  const length = text.length < 126 ? [128 | text.length] : [254, text.length >> 8, text.length & 255];
  return Buffer.concat([Buffer.from([129, ...length, 0, 0, 0, 0]), text]);
}

/** Resolves when the broker has taken the bytes, or stopped taking any. */
async function taken(socket: Socket, bytes: Buffer): Promise<void> {
  await Promise.race([new Promise((resolve) => socket.write(bytes, resolve)), sleep(5000)]);
}

function resident({ process: { pid } }: TestBroker): number {
  const [, kib] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kib) / 1024;
}
