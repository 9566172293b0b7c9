import { describe, expect, test } from "vitest";
import { decodeValue, encodeMessage } from "../../../../world/wire/codec.ts";

const again = (value: unknown): unknown => decodeValue(JSON.parse(encodeMessage(value)));

describe("messages of the world agent", () => {
  test("bytes and long whole numbers come back as they were, at any depth", () => {
    const message = {
      bytes: Buffer.from([0, 255, 128]),
      part: new Uint8Array([9, 1, 2, 9]).subarray(1, 3),
      at: 1_795_771_854_705_123_456n,
      list: [{ deep: Buffer.from("x") }, null, 1.5, "text"],
    };
    expect(again(message)).toEqual({
      ...message,
      part: Buffer.from([1, 2]),
    });
  });

  test("a variable of any name and value is no bytes, because variables are a list", () => {
    const env = [
      ["$bytes", "AAAA"],
      ["$int", "1"],
      ["__proto__", "x"],
      ["A", "line\nline\0"],
    ];
    expect(again({ env })).toEqual({ env });
  });

  test("text of any kind passes: quotes, controls, half of a pair", () => {
    for (const text of ["", "'\"\\`$()", "\u0000\u001b[31m", "\ud800", "\u{1f600}", '{"$bytes":"AAAA"}'])
      expect(again([text])).toEqual([text]);
  });
});
