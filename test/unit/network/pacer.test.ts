import { onTestFinished, describe, expect, test } from "vitest";
import { allowanceOf, type ByteBudget } from "../../../broker/network/allowance.ts";
import { Pacer } from "../../../broker/network/pacer.ts";
import { join, joiner, until } from "../../support/network/joined.ts";

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
    await until(() => (one?.egress ?? 0) > 300_000);
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
