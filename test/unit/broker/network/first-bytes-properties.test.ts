import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type FirstBytes,
  FirstBytesReader,
  MAX_FIRST_BYTES,
} from "../../../../broker/network/first-bytes.ts";
import { helloMessage, records } from "../../../support/network/hellos.ts";

const NAME = "good.example";
const RUNS = { numRuns: 2000 };

/** Bits of protocols, so that random bytes get further than the first of them. */
const TEXTS = [
  ..."\0\r\n \t:/@[]",
  "GET ",
  "CONNECT ",
  "PRI * HTTP/2.0\r\n",
  "http://",
  "/ HTTP/1.1\r\n",
  " HTTP/1.0\n",
  " RTSP/1.0\r\n",
  "GET /\r\n",
  "\x1f",
  "\x85",
  "\xa0",
  "ho",
  "Host: good.example\r\n",
  "Host:",
  "Host: evil.example\n",
  "evil.example",
  "\r\n\r\n",
  "\x16\x03\x01",
  "\x15\x03\x01\x00\x02\x01\x00",
  "\x80\x2e\x01\x03\x01",
  "\x00\x05\x01\x00\x00\x01",
];

const PIECES: readonly Uint8Array[] = [
  ...TEXTS.map((text) => Buffer.from(text, "latin1")),
  records(helloMessage({ names: [NAME], after: [[43, Buffer.of(2, 3, 4)]] })),
  Buffer.of(20, 3, 3, 0, 1, 1),
  Buffer.of(23, 3, 3, 0, 1, 1),
  Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1"),
];

const anyBytes = fc.oneof(
  fc.uint8Array({ maxLength: 300 }),
  fc
    .array(fc.oneof(fc.constantFrom(...PIECES), fc.uint8Array({ maxLength: 4 })), { maxLength: 20 })
    .map((pieces) => Buffer.concat(pieces)),
);

const otherName = fc
  .stringMatching(/^[a-z0-9-]{1,20}(\.[a-z0-9-]{1,20}){0,3}\.?$/)
  .filter((name) => name.replace(/\.$/, "") !== NAME);

const extension = fc.tuple(fc.integer({ min: 1, max: 65_535 }), fc.uint8Array({ maxLength: 200 }));

const shape = fc.record({
  before: fc.array(extension, { maxLength: 5 }),
  after: fc.array(extension, { maxLength: 5 }),
  sessionId: fc.integer({ min: 0, max: 32 }),
  suites: fc.integer({ min: 1, max: 100 }),
});

const sizes = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 5 });

test("the same bytes get the same answer however they are split, and none makes it throw", () => {
  fc.assert(
    fc.property(anyBytes, sizes, (bytes, cuts) => {
      const whole = inPieces(bytes, [bytes.length + 1]);
      expect(inPieces(bytes, cuts)).toEqual(whole);
      expect(whole.end.kind).not.toBe("undecided");
    }),
    RUNS,
  );
});

test("a hello for another name never agrees, in whatever records and segments it comes", () => {
  fc.assert(
    fc.property(otherName, shape, sizes, sizes, (name, rest, recordSizes, cuts) => {
      const hello = records(helloMessage({ ...rest, names: [name] }), recordSizes);
      expect(inPieces(hello, cuts).answer).toEqual({ kind: "disagrees", protocol: "tls", named: name });
    }),
    RUNS,
  );
});

test("a second hello for another name never agrees, in whatever pieces it comes", () => {
  const versions = [43, Buffer.of(2, 3, 4)] as const;
  const between = fc.array(fc.constantFrom(Buffer.of(20, 3, 3, 0, 1, 1), Buffer.of(21, 3, 3, 0, 2, 1, 90)), {
    maxLength: 4,
  });
  fc.assert(
    fc.property(otherName, between, sizes, sizes, (name, skipped, recordSizes, cuts) => {
      const first = records(helloMessage({ names: [NAME], after: [versions] }), recordSizes);
      const second = records(helloMessage({ names: [name] }), recordSizes);
      expect(inPieces(Buffer.concat([first, ...skipped, second]), cuts).answer.kind).toBe("disagrees");
    }),
    RUNS,
  );
});

test("its twin, a hello for the name, always agrees", () => {
  fc.assert(
    fc.property(shape, sizes, sizes, (rest, recordSizes, cuts) => {
      const hello = records(helloMessage({ ...rest, names: [NAME] }), recordSizes);
      expect(inPieces(hello, cuts).answer).toEqual({ kind: "agrees" });
    }),
    RUNS,
  );
});

test("a hello for another name with one damaged byte does not agree, but where a length hides the name from servers too", () => {
  const hello = records(helloMessage({ names: ["evil.example"], after: [[10, Buffer.alloc(8)]] }));
  const at = hello.indexOf("evil.example");
  const isLengthOrType = (index: number): boolean => index >= 9 + 34 && index < at - 5;
  const elsewhere = fc.nat(hello.length - 1).filter((index) => !isLengthOrType(index));
  fc.assert(
    fc.property(elsewhere, fc.integer({ min: 0, max: 255 }), sizes, (index, byte, cuts) => {
      const damaged = Buffer.from(hello);
      damaged[index] = byte;
      expect(inPieces(damaged, cuts).answer.kind).not.toBe("agrees");
    }),
    RUNS,
  );
});

test("a header line for another host never agrees, wherever it stands", () => {
  const line = fc.constantFrom(
    "Accept: */*",
    `Host: ${NAME}`,
    "X-Host: evil.example",
    "A:",
    " folded",
    "Host:",
  );
  const first = fc.constantFrom("GET / HTTP/1.1", "GET /", "POST / RTSP/1.0", "\xa0GET\x85/\x1fHTTP/1.1");
  fc.assert(
    fc.property(
      first,
      fc.array(line),
      fc.array(line),
      otherName,
      sizes,
      (request, before, after, name, cuts) => {
        const lines = [request, ...before, `Host: ${name}`, ...after, "", ""];
        expect(inPieces(Buffer.from(lines.join("\r\n"), "latin1"), cuts).answer.kind).toBe("disagrees");
      },
    ),
    RUNS,
  );
});

test("endless beginnings are cut at the bound, without work that grows with its square", () => {
  for (const start of [
    "\r\n",
    "GET /",
    "GET /\r\nHost",
    "GET / HTTP/1.1\r\n",
    "GET / HTTP/1.1\r\nHost:",
    "\x16\x03\x01\x00\x01\x01",
  ]) {
    const reader = new FirstBytesReader(NAME, spell);
    reader.push(Buffer.from(start, "latin1"));
    let pushed = start.length;
    for (; reader.answer.kind === "undecided"; pushed += 1) reader.push(Buffer.of(0x20));
    expect(pushed).toBeLessThanOrEqual(start.length + MAX_FIRST_BYTES + 1);
  }
});

function inPieces(bytes: Uint8Array, cuts: readonly number[]): { answer: FirstBytes; end: FirstBytes } {
  const reader = new FirstBytesReader(NAME, spell);
  for (let at = 0, index = 0; at < bytes.length; index += 1) {
    const size = cuts[index % cuts.length] ?? 1;
    reader.push(bytes.subarray(at, at + size));
    at += size;
  }
  return { answer: reader.answer, end: reader.end() };
}

function spell(text: string): string | null {
  return /^[a-z0-9.-]+$/i.test(text) ? text.toLowerCase().replace(/\.$/, "") : null;
}
