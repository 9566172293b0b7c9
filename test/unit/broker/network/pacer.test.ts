import { once } from "node:events";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Allowance, type ByteBudget, allowanceOf } from "../../../../broker/network/allowance.ts";
import { FirstBytesReader } from "../../../../broker/network/first-bytes.ts";
import { Pacer } from "../../../../broker/network/pacer.ts";
import { helloMessage, records } from "../../../support/network/hellos.ts";
import { brokenBy, join, joiner, readAll, until } from "../../../support/network/joined.ts";

const KIB = 1024;

describe("a pacer", () => {
  test("lets its burst pass at once: 16 KiB, or a tenth of a second of the rate", () => {
    for (const [rate, burst] of [
      [1000, 16 * KIB],
      [10_000_000, 1_000_000],
    ] as const) {
      const pacer = paced(rate, () => 0);
      takeAtOnce(pacer, burst);
      expect(pacer.take(1)).toBeInstanceOf(Promise);
    }
  });

  test("lets through what its clock says, whatever is asked", async () => {
    let now = 0;
    const pacer = paced(1_000_000, () => now);
    takeAtOnce(pacer, 100_000);
    let taken = 0;
    while (now < 1000) {
      const turns = [take(pacer, 1_000_000), take(pacer, 1)];
      now += 11;
      for (const turn of turns) taken += await turn;
    }
    expect(taken).toBeLessThanOrEqual(now * 1000);
    expect(taken).toBeGreaterThan(0.8 * now * 1000);
  });

  test("serves streams in turn: a greedy one gets no more pieces than another", async () => {
    const pacer = paced(2_000_000);
    const got = [0, 0, 0, 0, 0];
    let isOver = false;
    const streams = got.map(async (_, index) => {
      // The first asks for much more at a time, and was there before.
      const wanted = index === 0 ? 10_000_000 : 20_000;
      while (!isOver) got[index] = (got[index] ?? 0) + (await take(pacer, wanted));
    });
    await until(() => Math.max(...got) > 200_000);
    isOver = true;
    await Promise.all(streams);
    expect(Math.min(...got) / Math.max(...got)).toBeGreaterThan(0.8);
  });

  test("takes back what was not sent, and never more than its burst", () => {
    const pacer = paced(1000, () => 0);
    takeAtOnce(pacer, 16 * KIB);
    pacer.giveBack(500);
    takeAtOnce(pacer, 500);
    pacer.giveBack(1_000_000);
    takeAtOnce(pacer, 16 * KIB);
    expect(pacer.take(1)).toBeInstanceOf(Promise);
  });

  test("that is stopped gives nothing to who waits or comes later, and leaves no timer", async () => {
    const pacer = paced(1);
    takeAtOnce(pacer, 16 * KIB);
    const turn = take(pacer, 100);
    const before = timers();
    pacer.stop();
    expect(timers()).toBe(before - 1);
    expect([await turn, await take(pacer, 1), pacer.waiting]).toEqual([0, 0, 0]);
  });

  test("of the world and one of the agent both hold: two worlds share what their agent has", async () => {
    let now = 0;
    const agent = paced(1_000_000, () => now);
    const worlds = [paced(10_000_000, () => now), paced(100_000, () => now)];
    const got = [0, 0];
    let isOver = false;
    const streams = worlds.map(async (world, index) => {
      const allowance = allowanceOf([world, agent], []);
      while (!isOver) got[index] = (got[index] ?? 0) + (await allowance.take(5000));
    });
    while (now < 2000) {
      now += 10;
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    isOver = true;
    now += 100_000;
    await Promise.all(streams);
    const [wide = 0, narrow = 0] = got;
    expect(wide + narrow).toBeLessThanOrEqual(100_000 + 2000 * 1000 + 20_000);
    expect(narrow).toBeLessThanOrEqual(16 * KIB + 2 * 100_000 + 10_000);
    expect(wide).toBeGreaterThan(3 * narrow);
  });

  test("keeps nothing of what a budget refuses", async () => {
    const pacer = paced(1000, () => 0);
    const spent: ByteBudget = { reserve: () => 0, settle: () => undefined };
    expect(await allowanceOf([pacer], [spent]).take(1000)).toBe(0);
    takeAtOnce(pacer, 16 * KIB);
  });
});

describe("uploads through the pump", () => {
  test("of four times the rate get four times as far in the same time", async () => {
    const [slow, fast] = [paced(500_000), paced(2_000_000)];
    const uploads = await Promise.all(
      [slow, fast].map((pacer) => join({ allowance: allowanceOf([pacer], []) })),
    );
    const [one, four] = uploads.map(({ pump }) => pump);
    for (const { client, server } of uploads) {
      server.resume();
      client.write(Buffer.alloc(20_000_000));
    }
    // Their bursts are over.
    await until(() => (one?.egress ?? 0) > 100_000);
    const start = [one?.egress ?? 0, four?.egress ?? 0];
    await until(() => (one?.egress ?? 0) > 800_000);
    const [slowBytes, fastBytes] = [
      (one?.egress ?? 0) - (start[0] ?? 0),
      (four?.egress ?? 0) - (start[1] ?? 0),
    ];
    expect(fastBytes / slowBytes).toBeGreaterThan(3);
    expect(fastBytes / slowBytes).toBeLessThan(5);
  });

  test("that share a pacer advance together, and are not held up by one that has gone", async () => {
    const pacer = paced(2_000_000);
    const connect = await joiner();
    const uploads = [];
    for (let index = 0; index < 5; index += 1)
      uploads.push(await connect({ allowance: allowanceOf([pacer], []) }));
    for (const { client, server } of uploads) {
      server.resume();
      client.write(Buffer.alloc(20_000_000));
    }
    const [gone, ...others] = uploads.map(({ pump }) => pump);
    await until(() => others.every(({ egress }) => egress > 20_000));
    gone?.cut("gone");
    const start = others.map(({ egress }) => egress);
    await until(() => others.some(({ egress }, index) => egress - (start[index] ?? 0) > 200_000));
    const advanced = others.map(({ egress }, index) => egress - (start[index] ?? 0));
    expect(Math.min(...advanced) / Math.max(...advanced)).toBeGreaterThan(0.7);
    for (const { pump } of uploads) pump.cut("the test is over");
  });
});

function paced(bytesPerSecond: number, now?: () => number): Pacer {
  const pacer = new Pacer(bytesPerSecond, now);
  onTestFinished(() => pacer.stop());
  return pacer;
}

/** Fails when the pacer lets any of it wait. */
function takeAtOnce(pacer: Pacer, bytes: number): void {
  for (let left = bytes; left > 0; ) {
    const got = pacer.take(left);
    if (typeof got !== "number") throw new Error(`The last ${left} of ${bytes} bytes have to wait`);
    left -= got;
  }
}

async function take(pacer: Pacer, wanted: number): Promise<number> {
  return await pacer.take(wanted);
}

function timers(): number {
  return process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
}

const NAME = "good.example";

describe("a budget of bytes", () => {
  test("of 1,000,000 over 50 uploads lets no byte more arrive and nearly all of them, and resets the rest", async () => {
    const total = 1_000_000;
    const budget = new CountedBudget(total);
    const connect = await joiner();
    const joined = await Promise.all(
      Array.from({ length: 50 }, () => connect({ allowance: allowanceOf([], [budget]) })),
    );
    let received = 0;
    for (const { server } of joined) server.on("data", (bytes) => (received += bytes.length));
    const broken = Promise.all(joined.map(({ server }) => brokenBy(server)));
    for (const { client } of joined) client.resume().write(Buffer.alloc(total + 1));
    const ends = await Promise.all(joined.map(({ pump }) => pump.ended));
    expect(new Set(ends.map(({ ended, reason }) => `${ended} ${reason}`))).toEqual(new Set(["cut budget"]));
    expect(new Set(await broken)).toEqual(new Set(["ECONNRESET"]));
    expect(received).toBeLessThanOrEqual(total);
    expect(received).toBeGreaterThan(0.99 * total);
    expect(ends.reduce((sum, { egress }) => sum + egress, 0)).toBe(total);
    expect(budget.left).toBe(0);
  });

  test("lets through to its last byte, and cuts no answer", async () => {
    const budget = new CountedBudget(8);
    const { client, server, pump } = await join({ allowance: allowanceOf([], [budget]) });
    client.end("question");
    expect(String(await readAll(server))).toBe("question");
    server.end(Buffer.alloc(100_000));
    expect((await readAll(client)).length).toBe(100_000);
    expect(await pump.ended).toMatchObject({ ended: "closed", egress: 8, ingress: 100_000 });
  });

  test("of several, the smallest cuts, and the others keep what did not go out", async () => {
    const [small, large] = [new CountedBudget(10), new CountedBudget(1000)];
    for (const budgets of [
      [small, large],
      [large, small],
    ]) {
      const allowance = allowanceOf([], budgets);
      expect(await allowance.take(8)).toBe(8);
      expect(await allowance.take(8)).toBe(2);
      expect(await allowance.take(8)).toBe(0);
      expect([small.left, large.left]).toEqual([0, 990]);
      allowance.giveBack(10);
      expect([small.left, large.left]).toEqual([10, 1000]);
    }
  });

  test("gets back what was taken for a connection that had gone meanwhile", async () => {
    const budget = new CountedBudget(100);
    const late = new LateAllowance(allowanceOf([], [budget]));
    const { client, pump } = await join({ allowance: late });
    client.write("x".repeat(60));
    await until(() => late.asked > 0);
    pump.cut("gone");
    late.answer();
    await until(() => budget.left === 100);
    expect(await pump.ended).toMatchObject({ egress: 0 });
  });

  test("that fails to answer cuts the connection", async () => {
    const failing: Allowance = {
      take: () => {
        throw new Error("no ledger");
      },
      giveBack: () => undefined,
    };
    const { client, server, pump } = await join({ allowance: failing });
    let received = 0;
    server.on("data", (bytes) => (received += bytes.length));
    client.write("x");
    expect(await pump.ended).toMatchObject({ ended: "cut", reason: "no ledger", egress: 0 });
    expect(received).toBe(0);
  });
});

describe("what the world says first", () => {
  test("reaches the server unchanged when it names the right host", async () => {
    const hello = records(helloMessage({ names: [NAME] }), [100]);
    const { client, server } = await join({ firstBytes: reader() });
    client.write(hello.subarray(0, 50));
    client.end(Buffer.concat([hello.subarray(50), Buffer.from("and more")]));
    expect(await readAll(server)).toEqual(Buffer.concat([hello, Buffer.from("and more")]));
  });

  test("reaches the server with no byte when it names another", async () => {
    const hello = records(helloMessage({ names: ["evil.example"] }), [100]);
    const { client, server, pump } = await join({ firstBytes: reader() });
    let received = 0;
    server.on("data", (bytes) => (received += bytes.length));
    const broken = brokenBy(server);
    client.write(hello.subarray(0, 200));
    client.end(hello.subarray(200));
    expect(await pump.ended).toMatchObject({
      ended: "cut",
      reason: "first_bytes",
      egress: 0,
      refused: { kind: "disagrees", protocol: "tls", named: "evil.example" },
    });
    expect(await broken).toBe("ECONNRESET");
    expect(received).toBe(0);
  });

  test("may wait for what the server says first", async () => {
    const { client, server } = await join({ firstBytes: reader() });
    server.write("SSH-2.0-server\r\n");
    await once(client, "data");
    client.end("SSH-2.0-client\r\n");
    expect(String(await readAll(server))).toBe("SSH-2.0-client\r\n");
  });

  test("passes after a moment when it is one word, and what follows is still compared", async () => {
    const { client, server, pump } = await join({ firstBytes: reader() });
    client.write("ruok");
    const [said] = (await once(server, "data")) as [Buffer];
    expect(String(said)).toBe("ruok");
    let received = 0;
    server.on("data", (bytes) => (received += bytes.length));
    client.write(" / HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    expect(await pump.ended).toMatchObject({ ended: "cut", refused: { named: "evil.example" }, egress: 4 });
    expect(received).toBe(0);
  });

  test("that ends before it is whole is judged by what came", async () => {
    const { client, pump } = await join({ firstBytes: reader() });
    client.end(records(helloMessage({ names: [NAME] })).subarray(0, 40));
    expect(await pump.ended).toMatchObject({ ended: "cut", refused: { kind: "malformed" }, egress: 0 });
  });
});

class CountedBudget implements ByteBudget {
  left: number;

  constructor(left: number) {
    this.left = left;
  }

  reserve(bytes: number): number {
    const got = Math.min(bytes, this.left);
    this.left -= got;
    return got;
  }

  settle(reserved: number, used: number): void {
    this.left += reserved - used;
  }
}

/** Takes at once, and says so when it is told to. */
class LateAllowance implements Allowance {
  readonly #inner: Allowance;
  asked = 0;
  #answer: () => void = () => undefined;

  constructor(inner: Allowance) {
    this.#inner = inner;
  }

  async take(wanted: number): Promise<number> {
    this.asked += 1;
    const granted = this.#inner.take(wanted);
    await new Promise<void>((resolve) => (this.#answer = resolve));
    return granted;
  }

  giveBack(bytes: number): void {
    this.#inner.giveBack(bytes);
  }

  answer(): void {
    this.#answer();
  }
}

function reader(): FirstBytesReader {
  return new FirstBytesReader(NAME, (text) => (/^[a-z0-9.-]+$/i.test(text) ? text.toLowerCase() : null));
}
