import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { OUTPUT_ROOM, OutputRoom, OutputRooms } from "../../../../broker/worlds/output-room.ts";
import { BoundedOutput } from "../../../../broker/worlds/output.ts";

describe("the room for long outputs", () => {
  const MI = 1024 * 1024;
  const asks = (
    room: OutputRooms,
    promised: number,
    kept: number,
  ): { went: boolean; release: () => void } => {
    const share = room.share(promised);
    const asked = { went: false, release: share.release };
    share.whenRoom(() => {
      asked.went = true;
    }, kept);
    return asked;
  };

  test("what may become long takes no more than what is short, until it is long", () => {
    const room = new OutputRooms();
    for (let count = 0; count < 64; count += 1) expect(asks(room, 32 * MI, 1.5 * MI).went).toBe(true);
  });

  test("long ones hold back long ones alone, and let them in when they have ended", () => {
    const room = new OutputRooms();
    const most = Math.floor(OUTPUT_ROOM / (30 * MI));
    const long = Array.from({ length: most }, () => asks(room, 32 * MI, 3 * MI));
    expect(long.every(({ went }) => went)).toBe(true);
    const next = asks(room, 32 * MI, 3 * MI);
    expect(next.went).toBe(false);
    expect(asks(room, 32 * MI, MI).went).toBe(true);
    expect(asks(room, 2 * MI, 2 * MI).went).toBe(true);
    long[0]?.release();
    expect(next.went).toBe(true);
  });

  test("one that is being ended is not held back by either part", () => {
    const room = new OutputRooms();
    for (let count = 0; count < 5; count += 1) asks(room, 32 * MI, 3 * MI);
    const share = room.share(32 * MI);
    let went = false;
    share.whenRoom(() => {
      went = true;
    }, 3 * MI);
    expect(went).toBe(false);
    share.force();
    expect(went).toBe(true);
  });
});

describe("the room for outputs", () => {
  test("lets the next in when a reply is sent, in the order in which they asked", () => {
    const room = new OutputRoom(100);
    const went: string[] = [];
    const [one, two, three] = [room.share(60), room.share(60), room.share(10)];
    one.whenRoom(() => went.push("one"));
    two.whenRoom(() => went.push("two"));
    three.whenRoom(() => went.push("three"));
    expect(went).toEqual(["one"]);
    one.release();
    expect(went).toEqual(["one", "two", "three"]);
    one.release();
    expect(room.taken).toBe(70);
  });

  test("takes nothing for a command that writes little, and more than its bound for one that is alone", () => {
    const room = new OutputRoom(100);
    room.share(60).release();
    let went = false;
    room.share(1000).whenRoom(() => {
      went = true;
    });
    expect(went).toBe(true);
    expect(room.taken).toBe(1000);
  });

  test("holds no command back that is being ended", () => {
    const room = new OutputRoom(100);
    let went = false;
    room.share(100).whenRoom(() => {});
    const ended = room.share(100);
    ended.whenRoom(() => {
      went = true;
    });
    expect(went).toBe(false);
    ended.force();
    expect(went).toBe(true);
    ended.release();
    expect(room.taken).toBe(100);
  });

  test("whatever is asked and released, it stays in its bound, nobody is forgotten, and nothing is left", () => {
    const step = fc.record({ who: fc.nat({ max: 9 }), bytes: fc.integer({ min: 1, max: 80 }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const room = new OutputRoom(100);
        const went = new Set<number>();
        const shares = Array.from({ length: 10 }, (_each, n) => room.share(steps[n]?.bytes ?? 1));
        const released = new Set<number>();
        for (const { who } of steps) {
          if (went.has(who) && !released.has(who)) {
            released.add(who);
            shares[who]?.release();
          } else if (!released.has(who)) {
            shares[who]?.whenRoom(() => went.add(who));
          }
          expect(room.taken).toBeLessThanOrEqual(100);
        }
        for (let round = 0; round < 10; round += 1)
          for (const who of went)
            if (!released.has(who)) {
              released.add(who);
              shares[who]?.release();
            }
        expect(room.taken).toBe(0);
        for (const { who } of steps) expect(went.has(who)).toBe(true);
      }),
    );
  });
});

describe("bounded output", () => {
  test("whatever the chunks, it keeps the first half and the last half, and counts and hashes all", () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 30 }),
        fc.nat({ max: 100 }),
        (chunks, limit) => {
          const output = new BoundedOutput(limit);
          for (const chunk of chunks) output.push(chunk);
          const all = Buffer.concat(chunks);
          const head = Math.ceil(limit / 2);
          const kept =
            all.length <= limit
              ? all
              : Buffer.concat([all.subarray(0, head), all.subarray(all.length - (limit - head))]);
          expect(output.bytes()).toEqual(kept);
          expect(output.total).toBe(all.length);
          expect(output.truncated).toBe(all.length > limit);
          expect(output.sha256()).toBe(createHash("sha256").update(all).digest("hex"));
        },
      ),
    );
  });
});
