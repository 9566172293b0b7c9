import { expect, test } from "vitest";
import { TypedKeys } from "../../../../../api/cli/terminal/typed-keys.ts";

function typed(...parts: readonly string[]): TypedKeys {
  const keys = new TypedKeys();
  for (const part of parts) keys.add(Buffer.from(part));
  return keys;
}

test.each([
  ["echo a\recho b", "echo b"],
  ["echo a\recho b", "a\necho b"],
  ["echo a\recho b", "\recho b"],
  ["echo ax\x7f\r", "echo a\n"],
  ["lost\x15kept ü", "kept ü"],
  ["one\r\x15\x7f\x7ftwo", "one\ntwo"],
  ["echo foo.bar\x17baz\r", "echo foo.baz\n"],
  ["a b  \x17c", "a c"],
  ["a\x16\x17b\x04", "a\x17b"],
  ["\x1b[A", "\x1b[A"],
])("%j may come back as %j", (keys, text) => {
  expect(typed(keys).endsWith(text)).toBe(true);
  expect(typed("before\r", keys).endsWith(text)).toBe(true);
});

test.each([
  ["echo a\r", "echo b\n"],
  ["echo a\r", "x\necho a\n"],
  ["rm a b", "rm b"],
  ["", "x"],
])("%j may not come back as %j", (keys, text) => {
  expect(typed(keys).endsWith(text)).toBe(false);
});

test("only the last keys are kept, and many erased words take no time", () => {
  const keys = typed("a".repeat(20_000), "\r", "\x17".repeat(10_000), "end");
  expect(keys.endsWith("\nend")).toBe(true);
  expect(keys.endsWith("a".repeat(17_000))).toBe(false);
});
