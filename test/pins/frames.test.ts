import { describe, expect, test } from "vitest";
import { FRAME, TAG, TOUCHED_HEADER_SIZE } from "../../schemas/generated/frames.ts";
import { decodeFields, encodeEmpty, encodeFields, encodeNumber } from "../../world/linux/frame-codec.ts";
import { FrameReader } from "../../world/linux/frame-reader.ts";

describe("the wire between broker and init", () => {
  test("an EXEC frame has these bytes", () => {
    const frame = encodeExecLike();
    expect(frame.toString("hex")).toBe(
      "2e000000" +
        "02000000" +
        "07000000" +
        "10000000" +
        "02000000" +
        "6c73" +
        "11000000" +
        "03000000" +
        "413d31" +
        "12000000" +
        "01000000" +
        "2f" +
        "15000000" +
        "08000000" +
        "0001000000000000",
    );
  });

  test("a WINDOW and an empty DISCARD have these", () => {
    expect(encodeNumber(FRAME.WINDOW, 1, 65536).toString("hex")).toBe(
      "08000000" + "03000000" + "01000000" + "0000010000000000",
    );
    expect(encodeEmpty(FRAME.DISCARD, 258).toString("hex")).toBe("00000000" + "05000000" + "02010000");
  });

  test("a VIOLATION frame has this number and these tags", () => {
    const { VIOLATION } = FRAME;
    const { SECCOMP_GUARD, CALL, AUDIT, ARGUMENTS, HITS, REFUSED } = TAG;
    expect([VIOLATION, SECCOMP_GUARD, CALL, AUDIT, ARGUMENTS, HITS, REFUSED]).toEqual([
      72, 7, 50, 51, 52, 53, 54,
    ]);
  });

  test("SETUP says by this tag what namespaces commands may make", () => {
    expect(TAG.NESTED).toBe(120);
  });

  test("SETUP says by this tag that the world has the host's network", () => {
    expect(TAG.HOST_NETWORK).toBe(122);
  });

  test("an asker and a refused address have these frame numbers and tags", () => {
    expect([FRAME.ASKER, FRAME.REFUSED_ADDRESS, TAG.ADDRESS, TAG.PORT]).toEqual([24, 97, 123, 124]);
  });

  test("a shell's state has this frame number, and EXEC these tags for it", () => {
    expect([FRAME.STATE, TAG.STATE_PATH, TAG.STATE_SCRIPT]).toEqual([83, 29, 30]);
  });

  test("a TOUCHED frame has this number, these tags and records of this size", () => {
    const { RECORD_FILTER, PROJECT, RECORDED, UNREAD, UNTOLD } = TAG;
    expect([FRAME.TOUCHED, RECORD_FILTER, PROJECT, RECORDED, UNREAD, UNTOLD, TOUCHED_HEADER_SIZE]).toEqual([
      76, 14, 15, 61, 62, 63, 40,
    ]);
  });

  test("a stream cut anywhere gives the same frames", () => {
    const stream = Buffer.concat([
      encodeFields(FRAME.EXIT, 3, [[TAG.CODE, 7]]),
      Buffer.concat([Buffer.from("050000004300000009000000", "hex"), Buffer.from("hello")]),
      encodeEmpty(FRAME.CLOSED, 3),
    ]);
    for (let size = 1; size <= stream.length; size += 1) {
      const seen: string[] = [];
      let output = "";
      const reader = new FrameReader({
        onBytes: (type, id, bytes) => {
          output += `${type}:${id}:${bytes.toString()}`.replace(/^67:9:/, "");
        },
        onFrame: (type, id, payload) => seen.push(`${type}:${id}:${payload.length}`),
      });
      for (let at = 0; at < stream.length; at += size) reader.push(stream.subarray(at, at + size));
      expect({ seen, output }).toEqual({
        seen: [`${FRAME.EXIT}:3:16`, `${FRAME.CLOSED}:3:0`],
        output: "hello",
      });
    }
  });

  test("a field that leaves its frame, and a frame longer than the wire allows, are refused", () => {
    expect(() => decodeFields(Buffer.from("1000000003000000", "hex"))).toThrow(/leaves its frame/);
    const reader = new FrameReader({ onBytes: () => undefined, onFrame: () => undefined });
    expect(() => reader.push(Buffer.from("ffffffff4500000001000000", "hex"))).toThrow(RangeError);
  });
});

function encodeExecLike(): Buffer {
  return encodeFields(FRAME.EXEC, 7, [
    [TAG.ARG, "ls"],
    [TAG.ENV, "A=1"],
    [TAG.CWD, "/"],
    [TAG.WINDOW, 256],
  ]);
}
