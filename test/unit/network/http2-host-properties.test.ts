import fc from "fast-check";
import { expect, test } from "vitest";
import { type FirstBytes, FirstBytesReader } from "../../../broker/network/first-bytes.ts";
import {
  begun,
  CONTINUATION,
  END_HEADERS,
  frame,
  HEADERS,
  literal,
  request,
  writtenByNode,
} from "./http2.ts";
import { NAME, spell } from "./readings.ts";
import { leastCpuMs } from "../../cost.ts";

const RUNS = { numRuns: 1000 };

const otherName = fc
  .stringMatching(/^[a-z0-9-]{1,20}(\.[a-z0-9-]{1,20}){0,3}$/)
  .filter((name) => name !== NAME);
const fieldName = fc
  .stringMatching(/^[a-z0-9!#$%&'*+.^_`|~-]{1,30}$/)
  .filter((name) => name !== "host" && name !== "connection");
const fieldValue = fc.stringMatching(
  /^[\x21-\x7e\x80-\xff]([\x20-\x7e\x80-\xff]{0,60}[\x21-\x7e\x80-\xff])?$/,
);
const way = fc.constantFrom<0x40 | 0x00 | 0x10>(0x40, 0, 0x10);
const anyField = fc
  .tuple(fieldName, fieldValue, way)
  .map(([name, value, as]) => literal(name, value, { way: as }));
const fields = fc.array(anyField, { maxLength: 8 });
const host = fc.constantFrom({ index: 1 }, { index: 38 }, { name: ":authority" }, { name: "host" });
const sizes = fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 5 });

test("a request for another host never agrees, in whatever fields, frames and segments it comes; its twin does", () => {
  fc.assert(
    fc.property(
      otherName,
      fields,
      fields,
      host,
      way,
      sizes,
      sizes,
      (other, before, after, at, as, frames, cuts) => {
        for (const [name, kind] of [
          [other, "disagrees"],
          [NAME, "agrees"],
        ] as const) {
          const named =
            "index" in at ? literal("", name, { way: as, ...at }) : literal(at.name, name, { way: as });
          const block = Buffer.concat([...before, named, ...after]);
          expect(inPieces(Buffer.concat([begun(), ...inFrames(block, frames)]), cuts).kind).toBe(kind);
        }
      },
    ),
    RUNS,
  );
});

test("node's client is read whatever it sends beside the host", async () => {
  const others = fc.dictionary(
    fieldName.filter((name) => /^[a-z0-9-]+$/.test(name) && !HOP_BY_HOP.has(name)),
    fieldValue,
    { maxKeys: 10 },
  );
  await fc.assert(
    fc.asyncProperty(otherName, others, sizes, async (other, beside, cuts) => {
      const wrong = await writtenByNode({ ...beside, ":authority": other });
      expect(inPieces(wrong, cuts)).toEqual({ kind: "disagrees", protocol: "http", named: other });
      const right = await writtenByNode({ ...beside, ":authority": NAME });
      expect(inPieces(right, cuts)).toEqual({ kind: "agrees" });
    }),
    { numRuns: 100 },
  );
});

test("a request for another host with one damaged byte agrees only when the damage is in what names no host", () => {
  const bytes = request(Buffer.of(0x82, 0x84, 0x86), literal("", "evil.example", { index: 1 }));
  const name = bytes.indexOf("evil.example");
  fc.assert(
    fc.property(fc.nat(bytes.length - 1), fc.nat(255), sizes, (at, byte, cuts) => {
      const damaged = Buffer.from(bytes);
      damaged[at] = byte;
      const { kind } = inPieces(damaged, cuts);
      const isInName = at >= name;
      if (isInName) expect(kind).not.toBe("agrees");
      else expect(["agrees", "disagrees", "malformed", "undecided", "unreadable"]).toContain(kind);
    }),
    RUNS,
  );
});

test("random header blocks never make it throw, and get the same answer however they are split", () => {
  const piece = fc.oneof(fc.uint8Array({ maxLength: 30 }), anyField);
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 10 }), sizes, (pieces, cuts) => {
      const bytes = request(...pieces);
      expect(inPieces(bytes, cuts)).toEqual(inPieces(bytes, [bytes.length]));
    }),
    RUNS,
  );
});

test("a header that says the same long name again and again is read without work that grows with its square", () => {
  const long = literal("", "a".repeat(30_000), { way: 0x40, index: 1 });
  const again = Buffer.alloc(30_000, 0xbe);
  const bytes = Buffer.concat([begun(), ...inFrames(Buffer.concat([long, again]), [16_000])]);
  expect(inPieces(bytes, [4096]).kind).toBe("disagrees");
  expect(leastCpuMs(() => inPieces(bytes, [4096]))).toBeLessThan(1000);
});

/** What HTTP/2 has no fields for (RFC 9113 §8.2.2); node's client throws. */
const HOP_BY_HOP = new Set([
  "connection",
  "upgrade",
  "http2-settings",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "te",
]);

function inFrames(block: Uint8Array, lengths: readonly number[]): readonly Buffer[] {
  const frames: Buffer[] = [];
  for (let at = 0; at < block.length; ) {
    const part = block.subarray(at, at + (lengths[frames.length % lengths.length] ?? 1));
    at += part.length;
    frames.push(
      frame(frames.length === 0 ? HEADERS : CONTINUATION, at < block.length ? 0 : END_HEADERS, 1, part),
    );
  }
  return frames;
}

function inPieces(bytes: Uint8Array, cuts: readonly number[]): FirstBytes {
  const reader = new FirstBytesReader(NAME, spell);
  for (let at = 0, index = 0; at < bytes.length; index += 1) {
    const size = cuts[index % cuts.length] ?? 1;
    reader.push(bytes.subarray(at, at + size));
    at += size;
  }
  return reader.answer;
}
