import { expect, test } from "vitest";
import { patternCovers } from "../../world/backend.ts";

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
