/** Each expression is tried by real grep -E on real lines, beside JavaScript's own answer. */
import { spawnSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { posixExpression, Unsayable } from "../../../../broker/files/expression.ts";

const LINES = [
  "version 1.2.3",
  "foo bar.baz",
  "foobar.baz",
  "foo-x_bar",
  "name",
  "a]b",
  "a^b",
  "a-b",
  "a\\b",
  "café 1",
  "tab\there",
  "",
  "   ",
  "x{2}",
  "aa(b)",
  "na.me",
  "[x]",
  "é",
];

describe("an expression of a model", () => {
  test.each([
    String.raw`[\d.]+\.3`,
    String.raw`foo[\w.]+baz`,
    String.raw`[\w-]+_bar`,
    String.raw`[\s\S]1`,
    String.raw`[\s]1`,
    String.raw`na\x6de`,
    String.raw`a[\]]b`,
    String.raw`a[\^]b`,
    String.raw`a[\-x]b`,
    String.raw`a[-x]b`,
    String.raw`a[x-]b`,
    String.raw`a[\\]b`,
    String.raw`a\\b`,
    String.raw`a[^\n]b`,
    String.raw`a[^\]\\]b`,
    String.raw`caf\u00e9`,
    String.raw`[\u00e9]`,
    String.raw`tab\t`,
    String.raw`[\t ]`,
    String.raw`^\s*$`,
    String.raw`\bbar\b`,
    String.raw`(?:foo|na)(?<rest>.)m?`,
    String.raw`x\{2\}`,
    String.raw`a{2}\(b\)`,
    String.raw`na[.]me`,
    String.raw`\[x\]`,
    String.raw`[\[(]`,
    String.raw`a[^\w\s]b`,
    String.raw`foo[\w\-.]+baz`,
    String.raw`[a-c\d]$`,
    String.raw`(.)\1`,
  ])("finds what it finds in JavaScript: %s", (pattern) => {
    const wanted = LINES.filter((line) => new RegExp(pattern, "u").test(line));
    const grep = spawnSync("grep", ["-E", "-e", posixExpression(pattern)], {
      input: `${LINES.join("\n")}\n`,
      env: { LC_ALL: "C.UTF-8", PATH: process.env["PATH"] },
      encoding: "utf8",
    });
    expect(grep.stderr).toBe("");
    expect(grep.stdout.split("\n").slice(0, -1)).toEqual(wanted);
  });

  test.each([
    [String.raw`\Aversion`, "'\\A'"],
    [String.raw`a\nb`, "each line is searched alone"],
    [String.raw`[\n]`, "each line is searched alone"],
    [String.raw`(?=a)`, "no look-around"],
    [String.raw`(?i)a`, "no flags"],
    [String.raw`\p{L}`, "'\\p'"],
    [String.raw`[\W_]`, "cannot be said"],
    [String.raw`a\x00`, "no character of a line"],
  ])("is refused where POSIX cannot say it: %s", (pattern, why) => {
    expect(() => posixExpression(pattern)).toThrow(Unsayable);
    expect(() => posixExpression(pattern)).toThrow(why);
  });

  test("takes a dash beside a class for itself, as models mean it", () => {
    expect([String.raw`[\w-.]`, String.raw`[.-\w]`].map(posixExpression)).toEqual([
      "[[:alnum:]_.-]",
      "[.[:alnum:]_-]",
    ]);
  });

  test.each(["[[:alpha:]_]+", "[]a]", "[^]a]", "a|b", "[a", "a.*?b", "^$", "[a^]"])(
    "is left as it is where POSIX means the same: %s",
    (pattern) => {
      expect(posixExpression(pattern)).toBe(pattern);
    },
  );
});
