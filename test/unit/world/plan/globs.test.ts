import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { patternCovers } from "../../../../world/backend.ts";
import { denialWords } from "../../../../world/plan/denials.ts";
import {
  TooManyWords,
  literalPattern,
  parsePattern,
  pathOf,
  patternComplaint,
} from "../../../../world/plan/globs.ts";

function words(pattern: string): readonly string[] {
  return parsePattern(pattern).map((segments) => denialWords({ kind: "r", segments }).slice(1).join(" "));
}

describe("a pattern of a deny list", () => {
  test.each([
    ["/a/b", ["La Lb"]],
    ["/a/**/b", ["La D Lb"]],
    ["/a/**/**/b/**", ["La D Lb"]],
    ["/a/*.pem", ["La G*.pem"]],
    ["/a/x**y", ["La Gx**y"]],
    ["/a//b/./c/../d", ["La Lb Ld"]],
    ["/a/{b,c}/{d,e}", ["La Lb Ld", "La Lb Le", "La Lc Ld", "La Lc Le"]],
    ["/a/{b,{c,d}e}", ["La Lb", "La Lce", "La Lde"]],
    ["/a/{b}", ["La L{b}"]],
    ["/a/\\{b,c\\}", ["La L{b,c}"]],
    ["/a/\\*.pem", ["La L*.pem"]],
    ["/a/\\\\*", ["La G\\\\*"]],
    ["/a/[xy]z", ["La G[xy]z"]],
  ])("%s is %j", (pattern, expected) => {
    expect(words(pattern)).toEqual(expected);
  });

  test("a path made literal matches itself and nothing else, whatever its letters", () => {
    const name = fc.string({ minLength: 1 }).filter((text) => !/[/\0]/.test(text) && !/^\.\.?$/.test(text));
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 5 }), (names) => {
        const path = `/${names.join("/")}`;
        const [segments = [], ...others] = parsePattern(literalPattern(path));
        expect(others).toEqual([]);
        expect(pathOf(segments)).toBe(path);
      }),
    );
  });

  test("one that stands for too many others is refused", () => {
    expect(() => parsePattern(`/${"{a,b}".repeat(12)}`)).toThrow(TooManyWords);
  });

  test.each(["/**", "/", "/*/..", "!/a", "/a/@(b|c)", "/a/!(b)", "/a/[b", `/${"{a,b}".repeat(12)}`])(
    "%s is refused with a reason",
    (pattern) => {
      expect(patternComplaint(pattern)).toMatch(/^it /);
    },
  );

  test.each(["/a/**", "**/.env", ".git/hooks", "$HOME/.ssh", "/a/[bc]*", "a\\[b", "x{1,2}", "~/.aws"])(
    "%s is taken",
    (pattern) => {
      expect(patternComplaint(pattern)).toBeUndefined();
    },
  );
});

test.each([
  ["/a/b", "/a/b", true],
  ["/a/b", "/a/b/c/d", true],
  ["/a/b", "/a/bc", false],
  ["/a/b", "/a", false],
  ["/a/*", "/a/.b", true],
  ["/a/*", "/a", false],
  ["/a/*.lock", "/a/x.lock", true],
  ["/a/*.lock", "/a/b/x.lock", false],
  ["/a/**/*.lock", "/a/x.lock", true],
  ["/a/**/*.lock", "/a/b/c/x.lock/d", true],
  ["/a/**/*.lock", "/a/b/c/x.locks", false],
  ["/a/**", "/a/b", true],
  ["/a/**", "/a", true],
  ["/**/.env", "/x/y/.env", true],
  ["/**/.env", "/.env", true],
  ["/a/?", "/a/é", true],
  ["/a/?", "/a/bc", false],
  ["/a/{b,c}/d", "/a/c/d", true],
  ["/a/{b,c}/d", "/a/e/d", false],
  ["/a/\\*", "/a/*", true],
  ["/a/\\*", "/a/b", false],
  ["/a/x\\?*", "/a/x?y", true],
  ["/a/*a*b*c", `/a/${"a".repeat(5000)}`, false],
  ["/a/[bc]", "/a/b", false],
])("'%s' covers %s: %s", (pattern, path, covered) => {
  expect(patternCovers(pattern, path)).toBe(covered);
});
