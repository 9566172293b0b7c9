import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { replyTo } from "../../../broker/network/dns-answer.ts";
import { OPT, UdpClient, WorldStub, question, rawQuestion, spell } from "../../support/network/world-stub.ts";

const GOOD = question("www.a.example", "A", { additionals: [OPT] });

/** Answers that allow everything: what comes out of a message is then what was understood of it. */
function everything(names: string[] = []) {
  return {
    spell,
    decide: (name: string) => names.push(name) > 0,
    addressOf: () => "198.18.0.1",
    onRefused: () => {},
    onFault: (error: unknown) => {
      throw error;
    },
  };
}

/** What holds of any reply to any message. */
function holds(message: Buffer): void {
  const reply = replyTo(message, everything());
  if (reply === undefined) return;
  expect(reply.length).toBeLessThanOrEqual(Math.max(12, Math.min(298, message.length + 16)));
  expect(reply.readUInt16BE(0)).toBe(message.readUInt16BE(0));
  expect(reply.readUInt16BE(2) & 0x8000).toBe(0x8000);
  expect(reply.readUInt16BE(2) & 0x0270).toBe(0);
}

describe("messages of any bytes", () => {
  test("each prefix of a good query is answered as malformed, or not at all", () => {
    for (let length = 0; length < GOOD.length; length++) {
      const reply = replyTo(GOOD.subarray(0, length), everything());
      if (length < 12) expect(reply).toBeUndefined();
      else expect((reply?.readUInt16BE(2) ?? 0) & 15).toBe(1);
    }
    expect((replyTo(GOOD, everything())?.readUInt16BE(2) ?? 15) & 15).toBe(0);
  });

  test("none throws, and none gets a reply that is much longer than itself", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 600 }), (bytes) => holds(Buffer.from(bytes))),
      { numRuns: 3000 },
    );
  });

  test("none of 18 bytes, with any counts, throws", () => {
    const header = fc.tuple(
      fc.integer({ min: 0, max: 0x7fff }),
      fc.array(fc.nat(3), { minLength: 4, maxLength: 4 }),
    );
    fc.assert(
      fc.property(header, fc.uint8Array({ minLength: 6, maxLength: 6 }), ([flags, counts], rest) => {
        const message = Buffer.alloc(18);
        message.writeUInt16BE(flags & 0x87ff, 2);
        for (const [at, count] of counts.entries()) message.writeUInt16BE(count, 4 + at * 2);
        message.set(rest, 12);
        holds(message);
      }),
      { numRuns: 3000 },
    );
  });

  test("a good query with any bytes changed, cut or added throws nothing", () => {
    const change = fc.tuple(fc.nat(GOOD.length - 1), fc.nat(255));
    fc.assert(
      fc.property(
        fc.array(change, { maxLength: 6 }),
        fc.nat(GOOD.length),
        fc.uint8Array({ maxLength: 40 }),
        (changes, cut, more) => {
          const message = Buffer.from(GOOD);
          for (const [at, byte] of changes) message[at] = byte;
          holds(Buffer.concat([message.subarray(0, cut), more]));
        },
      ),
      { numRuns: 3000 },
    );
  });

  test("a name is understood as its labels with dots between them, or not at all", () => {
    const byte = fc.oneof(
      fc.constantFrom(..."ab-_.\0\\ A9*/%é".split("")),
      fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
    );
    const label = fc.array(byte, { minLength: 1, maxLength: 8 }).map((parts) => parts.join(""));
    fc.assert(
      fc.property(fc.array(label, { minLength: 1, maxLength: 4 }), (labels) => {
        const names: string[] = [];
        replyTo(rawQuestion(labels, 28), everything(names));
        const plain = labels.every((text) => /^[A-Za-z0-9_-]+$/.test(text));
        expect(names).toEqual(plain ? [labels.join(".").toLowerCase()] : []);
      }),
      { numRuns: 3000 },
    );
  });

  test("a socket that got all of that still serves", async () => {
    using world = await WorldStub.start(["a.example"]);
    using client = new UdpClient(world.udpPort);
    for (const [at, bytes] of fc
      .sample(fc.uint8Array({ maxLength: 1500 }), { numRuns: 500, seed: 18 })
      .entries()) {
      client.send(Buffer.from(bytes));
      // The kernel keeps some hundred datagrams and drops the rest.
      if (at % 20 === 0) await sleep(1);
    }
    expect(await world.askName("a.example", "A")).toMatchObject({ rcode: "NOERROR" });
    expect(world.faults).toEqual([]);
  });
});
