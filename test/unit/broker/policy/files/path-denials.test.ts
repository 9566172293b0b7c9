import { expect, test } from "vitest";
import { deniedBy } from "../../../../../broker/policy/files/path-denials.ts";

const FOLDERS = { project: "/work/app", home: "/home/me" };

test.each([
  ["/work/app/a/b/.env", "**/.env", true],
  ["/work/app/.env/below", "**/.env", true],
  ["/work/app/.envrc", "**/.env", false],
  ["/home/me/.ssh/id", "$HOME/.ssh", true],
  ["/home/me/.sshfoo", "$HOME/.ssh", false],
  ["/work/app/k/x.pem", "$PROJECT/k/*.{pem,key}", true],
  ["/work/app/k/x.crt", "$PROJECT/k/*.{pem,key}", false],
  ["/work/app/k/anything", "$PROJECT/k/[ab]", true],
])("%s by %s: %s", (path, pattern, isDenied) => {
  expect(deniedBy(path, [pattern], FOLDERS) !== undefined).toBe(isDenied);
});

test("a path of 2,000 folders is answered in bounded time, whatever the pattern", () => {
  const path = `/work/app${"/a".repeat(2000)}/x`;
  const begin = performance.now();
  expect(deniedBy(path, ["**/a/**/a/**/secret"], FOLDERS)).toBeUndefined();
  expect(performance.now() - begin).toBeLessThan(1000);
});
