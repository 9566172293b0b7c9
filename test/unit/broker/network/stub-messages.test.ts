import { setTimeout as sleep } from "node:timers/promises";
import type { OptAnswer } from "dns-packet";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { replyTo as replyToAsker, type StubAnswers } from "../../../../broker/network/dns-answer.ts";
import {
  OPT,
  UdpClient,
  WorldStub,
  question,
  rawQuestion,
  spell,
} from "../../../support/network/world-stub.ts";

const ASKING = { asker: { transport: "udp", port: 40_000 }, until: () => {} } as const;

function replyTo(message: Buffer, answers: StubAnswers): Buffer | undefined {
  const reply = replyToAsker(message, answers, ASKING);
  if (reply instanceof Promise) throw new TypeError("The name's standing is known, and the reply waits");
  return reply;
}

const ALLOWED = ["a.example", "b.example", "xn--bcher-kva.example"];

describe("names that are labels of any bytes", () => {
  test.each<[shown: string, labels: (string | Buffer)[]]>([
    ["a\\.example", ["a.example"]],
    ["a\\.example.evil", ["a.example", "evil"]],
    ["a\\000.example", ["a\0", "example"]],
    ["a.example\\000", ["a", "example\0"]],
    ["a.example\\000.evil", ["a", "example\0", "evil"]],
    ["a.example\\..evil", ["a", "example.", "evil"]],
    ["a.example/", ["a", "example/"]],
    ["a.example\\032", ["a", "example "]],
    ["\\009a.example", ["\ta", "example"]],
    ["a.exampl\\195\\169", ["a", "exampl\xc3\xa9"]],
    ["a.exam\\194\\173ple", ["a", "exam\xc2\xadple"]],
    ["\\239\\189\\129.example", ["\xef\xbd\x81", "example"]],
    ["a.example\\012\\027[31m", ["a", "example\f\x1b[31m"]],
    ["%61.example", ["%61", "example"]],
    ["a@b.example", ["a@b", "example"]],
    ["*.example", ["*", "example"]],
    [".", []],
  ])("%s is not taken for another name, and its question comes back as it was", async (shown, labels) => {
    using world = await WorldStub.start([...ALLOWED, "a.example.evil", "a"]);
    const asked = rawQuestion(labels);
    const { bytes, packet } = await world.ask(asked);
    expect(packet.rcode).toBe("NXDOMAIN");
    expect(bytes.subarray(12)).toEqual(asked.subarray(12));
    expect(world.refused).toEqual([`A ${shown}`]);
    expect(world.addresses.nameOf("198.18.0.1")).toBeUndefined();
  });

  test("a name of another script comes in its ASCII form", async () => {
    using world = await WorldStub.start(ALLOWED);
    expect((await world.askName("xn--bcher-kva.example", "A")).answers).toMatchObject([
      { data: "198.18.0.1" },
    ]);
    expect((await world.ask(rawQuestion(["b\xc3\xbccher", "example"]))).packet.rcode).toBe("NXDOMAIN");
  });

  test("the longest name fits a reply of 512 bytes", async () => {
    const labels = ["a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(61)];
    using world = await WorldStub.start([labels.join(".")]);
    const opt = Buffer.from([0, 0, 41, 2, 0, 0, 0, 0, 0, 0, 0]);
    const asked = Buffer.concat([rawQuestion(labels), opt]);
    asked.writeUInt16BE(1, 10);
    const { bytes, packet } = await world.ask(asked);
    expect(packet).toMatchObject({ rcode: "NOERROR", flag_tc: false, answers: [{ data: "198.18.0.1" }] });
    expect(bytes.length).toBe(298);
    const tooLong = await world.ask(rawQuestion([...labels.slice(0, 3), "d".repeat(62)]));
    expect(tooLong.packet.rcode).toBe("FORMERR");
  });
});

describe("what is asked for that is no name", () => {
  test("other classes and requests to a server are refused", async () => {
    using world = await WorldStub.start(ALLOWED);
    expect((await world.ask(rawQuestion(["version", "bind"], 16, 3))).packet.rcode).toBe("REFUSED");
    expect((await world.ask(rawQuestion(["a", "example"], 1, 255))).packet.rcode).toBe("REFUSED");
    // The top bit of a class is multicast DNS's, and makes another class here.
    expect((await world.ask(rawQuestion(["a", "example"], 1, 0x8001))).packet.rcode).toBe("REFUSED");
    expect(await world.askName("a.example", "AXFR")).toMatchObject({ rcode: "REFUSED" });
  });

  test.each([1, 2, 4, 5, 15])("operation %i is not implemented", async (opcode) => {
    using world = await WorldStub.start(ALLOWED);
    const asked = question("a.example", "A");
    asked.writeUInt16BE(opcode << 11, 2);
    const { packet, bytes } = await world.ask(asked);
    expect(packet).toMatchObject({ id: 0x1234, rcode: "NOTIMP", questions: [] });
    expect(bytes.readUInt16BE(2) & 0x7800).toBe(opcode << 11);
    expect(bytes.length).toBe(12);
  });

  test("a reply is not answered: two servers would talk for ever", async () => {
    using world = await WorldStub.start(ALLOWED);
    using client = new UdpClient(world.udpPort);
    const reply = question("a.example", "A");
    reply.writeUInt16BE(0x8180, 2);
    client.send(reply);
    client.send(question("b.example", "A"));
    expect((await client.next()).includes("b")).toBe(true);
  });

  test("two questions, none, or records with the question are malformed", async () => {
    using world = await WorldStub.start(ALLOWED);
    for (const [at, count] of [
      [4, 0],
      [4, 2],
      [4, 65_535],
      [6, 1],
      [8, 1],
      [10, 1],
      [10, 3],
      [10, 65_535],
    ] as const) {
      const asked = question("a.example", "A");
      asked.writeUInt16BE(count, at);
      expect((await world.ask(asked)).packet).toMatchObject({ id: 0x1234, rcode: "FORMERR" });
    }
    expect((await world.ask(Buffer.concat([question("a.example", "A"), Buffer.alloc(1)]))).packet.rcode).toBe(
      "FORMERR",
    );
  });

  test("a name that points to itself, to the header or beyond is malformed", async () => {
    using world = await WorldStub.start(ALLOWED);
    for (const pointer of [
      [0xc0, 12],
      [0xc0, 0],
      [0xff, 0xff],
      [0x40, 0],
      [0x80, 0],
      [1, 97, 0xc0, 12],
    ]) {
      const asked = Buffer.concat([rawQuestion([]).subarray(0, 12), Buffer.from([...pointer, 0, 1, 0, 1])]);
      expect((await world.ask(asked)).packet.rcode).toBe("FORMERR");
    }
  });
});

describe("EDNS", () => {
  test("who speaks it is answered with it, DO bit and all; who does not, without", async () => {
    using world = await WorldStub.start(ALLOWED);
    const plain = await world.askName("a.example", "A", { additionals: [OPT] });
    expect(plain.additionals).toMatchObject([
      { type: "OPT", name: ".", udpPayloadSize: 1232, ednsVersion: 0, flag_do: false },
    ]);
    const dnssec = await world.askName("a.example", "A", {
      additionals: [{ ...OPT, flags: 0x8000, flag_do: true }],
    });
    expect(dnssec.additionals).toMatchObject([{ type: "OPT", flag_do: true }]);
    expect(await world.askName("evil.example", "A", { additionals: [OPT] })).toMatchObject({
      rcode: "NXDOMAIN",
      additionals: [{ type: "OPT", extendedRcode: 0 }],
    });
    expect((await world.askName("a.example", "A")).additionals).toEqual([]);
  });

  test("options are read over: cookies, client subnets and padding change nothing", async () => {
    using world = await WorldStub.start(ALLOWED);
    const options: OptAnswer["options"] = [
      { code: 8, family: 1, sourcePrefixLength: 24, ip: "203.0.113.0" },
      { code: 12, length: 300 },
    ];
    const reply = await world.askName("a.example", "A", { additionals: [{ ...OPT, options }] });
    expect(reply).toMatchObject({ rcode: "NOERROR", additionals: [{ type: "OPT", options: [] }] });
  });

  test("a version that is not ours is answered BADVERS, which needs the upper bits", async () => {
    using world = await WorldStub.start(ALLOWED);
    const reply = await world.askName("a.example", "A", { additionals: [{ ...OPT, ednsVersion: 1 }] });
    expect(reply).toMatchObject({
      rcode: "NOERROR",
      answers: [],
      additionals: [{ extendedRcode: 1, ednsVersion: 0 }],
    });
  });

  test("two of them, or one with a name, are malformed", async () => {
    using world = await WorldStub.start(ALLOWED);
    expect(await world.askName("a.example", "A", { additionals: [OPT, OPT] })).toMatchObject({
      rcode: "FORMERR",
    });
    const named = Buffer.concat([
      question("a.example", "A"),
      Buffer.from([1, 97, 0, 0, 41, 2, 0, 0, 0, 0, 0, 0, 0]),
    ]);
    named.writeUInt16BE(1, 10);
    expect((await world.ask(named)).packet.rcode).toBe("FORMERR");
  });
});

const GOOD = question("www.a.example", "A", { additionals: [OPT] });

/** Answers that allow everything: what comes out of a message is then what was understood of it. */
function everything(names: string[] = []) {
  return {
    spell,
    decide: (name: string) => names.push(name) > 0,
    standing: () => "found" as const,
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
