import { describe, expect, test } from "vitest";
import { type FirstBytes, FirstBytesReader } from "../../../broker/network/first-bytes.ts";
import { HTTP2_PREFACE } from "../../../broker/network/http2-host.ts";
import {
  begun,
  CONTINUATION,
  END_HEADERS,
  frame,
  HEADERS,
  integer,
  literal,
  request,
  SETTINGS,
  writtenByNode,
} from "./http2.ts";
import { NAME, read, readByBytes, spell } from "./readings.ts";

const EVIL = "evil.example";
const AUTHORITY = 1;
const HOST = 38;
const right = literal("", NAME, { index: AUTHORITY });
const wrong = literal("", EVIL, { index: AUTHORITY });
const evil = { kind: "disagrees", protocol: "http", named: EVIL } as const;

/** RFC 7541, C.3.1 to C.4.1 and C.6.1: header blocks with `:authority: www.example.com`, uncoded and coded. */
const OF_THE_RFC = {
  uncoded: "828684410f7777772e6578616d706c652e636f6d",
  coded: "828684418cf1e3c2e5f23a6ba0ab90f4ff",
};

describe("the first request of HTTP/2 without TLS", () => {
  test.each(Object.entries(OF_THE_RFC))("is read as RFC 7541 has it: %s", (_, hex) => {
    const bytes = request(Buffer.from(hex, "hex"));
    expect(read(bytes, "www.example.com")).toEqual({ kind: "agrees" });
    expect(both(bytes)).toEqual({ kind: "disagrees", protocol: "http", named: "www.example.com" });
  });

  test.each([NAME, "Good.Example.", `${NAME}:8080`])(
    "of node's client for '%s' agrees",
    async (authority) => {
      expect(both(await writtenByNode({ ":authority": authority }))).toEqual({ kind: "agrees" });
    },
  );

  test("of node's client for another host disagrees, whatever letters its name has", async () => {
    for (const named of [EVIL, "a", "xn--bcher-kva.example", "_-.0123456789", ALL_LETTERS])
      expect(both(await writtenByNode({ ":authority": named }))).toEqual({
        kind: "disagrees",
        protocol: "http",
        named,
      });
  });

  test("of node's client may say beside it what no host could", async () => {
    const others = { "x-letters": "\\\u00fc\u00ff\t ", "x-long": "ab".repeat(3000), cookie: "a=b" };
    expect(both(await writtenByNode({ ":authority": NAME, ...others }))).toEqual({ kind: "agrees" });
    expect(both(await writtenByNode({ ":authority": EVIL, ...others }))).toEqual(evil);
  });

  test.each([
    ["by an index for the name", request(wrong)],
    ["by its name in letters", request(literal(":authority", EVIL))],
    ["never to be indexed", request(literal(":authority", EVIL, { way: 0x10 }))],
    [
      "in the dynamic table",
      request(literal("", EVIL, { way: 0x40, index: AUTHORITY }), integer(0x80, 7, 62)),
    ],
    ["by a name out of the dynamic table", request(...addedThenNamed())],
    ["in a host field", request(literal("", EVIL, { index: HOST }))],
    ["in a host field beside the right authority", request(right, literal("host", EVIL))],
    ["before the right one", request(wrong, right)],
    ["behind the right one", request(right, wrong)],
    ["in a path that is a URL", request(right, literal(":path", `http://${EVIL}/`))],
    ["after a change of the table's size", request(integer(0x20, 5, 4096), wrong)],
    [
      "behind settings, pings and unknown frames",
      Buffer.concat([begun(), ...FRAMES_BEFORE, requestFrame(wrong)]),
    ],
    ["without settings", Buffer.concat([HTTP2_PREFACE, requestFrame(wrong)])],
    [
      "padded, with a priority",
      Buffer.concat([begun(), frame(HEADERS, END_HEADERS | 0x28, 1, padded(wrong))]),
    ],
    ["with the reserved bit", Buffer.concat([begun(), frame(HEADERS, END_HEADERS, 2 ** 31 + 1, wrong)])],
    ["in continuations", Buffer.concat([begun(), ...inFrames(wrong)])],
  ])("that names another host %s is cut", (_, bytes) => {
    expect(both(bytes)).toEqual(evil);
  });

  test.each([
    ["by an index for the name", request(right)],
    [
      "in the dynamic table",
      request(literal("", NAME, { way: 0x40, index: AUTHORITY }), integer(0x80, 7, 62)),
    ],
    ["in a host field too", request(right, literal("host", NAME))],
    ["with a path that has another's name in it", request(right, literal(":path", `/?u=http://${EVIL}/`))],
    ["with another's name in a field that names none", request(right, literal("x-host", EVIL))],
    [
      "behind settings, pings and unknown frames",
      Buffer.concat([begun(), ...FRAMES_BEFORE, requestFrame(right)]),
    ],
    [
      "padded, with a priority",
      Buffer.concat([begun(), frame(HEADERS, END_HEADERS | 0x28, 1, padded(right))]),
    ],
    ["in continuations", Buffer.concat([begun(), ...inFrames(right)])],
    ["not at all", request(Buffer.of(0x82, 0x84, 0x86))],
    ["as nothing", request(literal("", "", { index: AUTHORITY }))],
  ])("that names the right host %s agrees", (_, bytes) => {
    expect(both(bytes)).toEqual({ kind: "agrees" });
  });

  test.each([
    [
      "a size of a frame that no server has allowed",
      Buffer.concat([begun(), frame(HEADERS, 4, 1, Buffer.alloc(16_385))]),
    ],
    ["data before it", Buffer.concat([begun(), frame(0, 0, 1, Buffer.alloc(3))])],
    ["a continuation of nothing", Buffer.concat([begun(), frame(CONTINUATION, 4, 1, right)])],
    [
      "a continuation of another stream",
      Buffer.concat([begun(), frame(HEADERS, 0, 1, right), frame(CONTINUATION, 4, 3, right)]),
    ],
    [
      "another frame within it",
      Buffer.concat([begun(), frame(HEADERS, 0, 1, right), frame(SETTINGS, 0, 0, right)]),
    ],
    ["no stream", Buffer.concat([begun(), frame(HEADERS, 4, 0, right)])],
    ["more padding than there is", Buffer.concat([begun(), frame(HEADERS, 0xc, 1, Buffer.of(9, 0x82))])],
    ["no room for its priority", Buffer.concat([begun(), frame(HEADERS, 0x24, 1, Buffer.of(0x82))])],
    ["a string that is longer than it", request(Buffer.of(0x01, 0x05, 0x61))],
    ["a number without an end", request(Buffer.of(0xff, 0x80, 0x80))],
    ["a number that is too large", request(Buffer.of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f))],
    ["the index 0", request(Buffer.of(0x80))],
    ["an index of nothing", request(integer(0x80, 7, 62))],
    ["a coded host with a letter that no host has", request(Buffer.of(0x01, 0x83, 0xff, 0xff, 0xff))],
    ["a coded host with padding of zeros", request(Buffer.of(0x01, 0x81, 0x18))],
    ["a coded host with too much padding", request(Buffer.of(0x01, 0x82, 0x1f, 0xff))],
    ["a name in capitals", request(right, literal("Host", EVIL))],
    ["a name with a blank", request(right, literal(":authority ", EVIL))],
    [
      "endless continuations",
      Buffer.concat([
        begun(),
        frame(HEADERS, 0, 1, right),
        ...Array.from({ length: 8000 }, () => frame(CONTINUATION, 0, 1, Buffer.alloc(0))),
      ]),
    ],
  ])("with %s is cut", (_, bytes) => {
    expect(both(bytes)).toMatchObject({ kind: "malformed", protocol: "http" });
  });

  test("that its client cut off is cut", () => {
    const whole = request(wrong);
    expect(inPart(whole.subarray(0, -1)).end()).toMatchObject({ kind: "malformed" });
    expect(inPart(begun().subarray(0, -1)).end()).toMatchObject({ kind: "malformed" });
    expect(inPart(begun()).end()).toEqual({ kind: "agrees" });
  });
});

describe("before the first request of HTTP/2 without TLS", () => {
  test("whole frames may go at once, for clients that wait for the server's; a frame that has begun waits", () => {
    const reader = new FirstBytesReader(NAME, spell);
    expect(reader.push(begun())).toEqual({ kind: "agrees" });
    expect(reader.isSettled).toBe(false);
    const ping = frame(6, 0, 0, Buffer.alloc(8));
    expect(reader.push(ping.subarray(0, 12))).toEqual({ kind: "undecided" });
    expect(reader.isHarmless).toBe(false);
    expect(reader.push(ping.subarray(12))).toEqual({ kind: "agrees" });
    expect(reader.push(requestFrame(wrong))).toEqual(evil);
  });

  test("any number of frames passes, and hides no request behind them", () => {
    const pings = Buffer.concat(Array.from({ length: 20_000 }, () => frame(6, 0, 0, Buffer.alloc(8))));
    const bytes = Buffer.concat([begun(), pings, requestFrame(wrong)]);
    expect(read(bytes)).toEqual(evil);
    for (const size of [17, 65_536]) {
      const reader = new FirstBytesReader(NAME, spell);
      for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size));
      expect(reader.answer).toEqual(evil);
    }
  });

  test.each([
    ["a header of HTTP/1 in the preface", `PRI * HTTP/2.0\r\nHost: ${EVIL}\r\n\r\n`],
    ["a blank line before the preface", `\r\n${Buffer.from(HTTP2_PREFACE).toString("latin1")}`],
    ["a preface with another end", "PRI * HTTP/2.0\r\n\r\nSX\r\n\r\n"],
    ["a preface with bare line feeds", "PRI * HTTP/2.0\n\nSM\n\n"],
    ["a request of HTTP/1.1 with its method", `PRI / HTTP/1.1\r\nHost: ${NAME}\r\n\r\n`],
  ])("%s is cut", (_, text) => {
    expect(both(Buffer.from(text, "latin1"))).toMatchObject({ kind: "malformed", protocol: "http" });
  });
});

/** All whose codes have up to 15 bits. Node's client takes any text for an authority. */
const ALL_LETTERS = Array.from({ length: 94 }, (_, index) => String.fromCharCode(33 + index))
  .filter((letter) => letter !== "\\")
  .join("");

const FRAMES_BEFORE = [
  frame(8, 0, 0, Buffer.of(0, 1, 0, 0)),
  frame(6, 0, 0, Buffer.alloc(8)),
  frame(2, 0, 3, Buffer.alloc(5)),
  frame(0x10, 0, 0, Buffer.from("\0\0\0\x01u=1", "latin1")),
  frame(0xba, 0xff, 77, Buffer.from("GREASE")),
];

function requestFrame(block: Uint8Array): Buffer {
  return frame(HEADERS, END_HEADERS, 1, block);
}

function padded(block: Uint8Array): Buffer {
  return Buffer.concat([Buffer.of(7, 0, 0, 0, 0, 15), block, Buffer.alloc(7, 0xbe)]);
}

/** A byte in each frame. */
function inFrames(block: Uint8Array): readonly Buffer[] {
  return [...block].map((byte, index) =>
    frame(
      index === 0 ? HEADERS : CONTINUATION,
      index === block.length - 1 ? END_HEADERS : 0,
      1,
      Buffer.of(byte),
    ),
  );
}

/** The name comes from an entry that was added before another one. */
function addedThenNamed(): readonly Buffer[] {
  const added = literal("", NAME, { way: 0x40, index: AUTHORITY });
  return [added, literal("x-other", "any", { way: 0x40 }), literal("", EVIL, { index: 63 })];
}

function inPart(bytes: Uint8Array): FirstBytesReader {
  const reader = new FirstBytesReader(NAME, spell);
  reader.push(bytes);
  return reader;
}

/** The answer, which is the same byte by byte. */
function both(bytes: Uint8Array): FirstBytes {
  const answer = read(bytes);
  expect(readByBytes(bytes)).toEqual(answer);
  return answer;
}
