import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { landingOf } from "../../../../broker/model/landing.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(realpathSync(tmpdir()), "substrate-landing-"));
  mkdirSync(join(folder, "a/b"), { recursive: true });
  writeFileSync(join(folder, "a/file"), "");
  const links = {
    "to-b": "a/b",
    dangling: "a/missing/x",
    up: "../..",
    one: "two",
    two: "one",
    twice: "to-b/../link",
  };
  for (const [name, target] of Object.entries(links)) symlinkSync(target, join(folder, name));
  symlinkSync(join(folder, "a/new"), join(folder, "a/link"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each([
  { path: "a/file", lands: "a/file" },
  { path: "to-b", lands: "a/b" },
  { path: "to-b/x/y", lands: "a/b/x/y" },
  { path: "to-b/../file", lands: "a/file" },
  { path: "to-b/../x/../y", lands: "a/y" },
  { path: "dangling", lands: "a/missing/x" },
  { path: "dangling/below", lands: "a/missing/x/below" },
  { path: "twice", lands: "a/new" },
  { path: "missing/../to-b", lands: "to-b" },
  { path: `to-b/${"deep/".repeat(60)}end`, lands: `a/b/${"deep/".repeat(60)}end` },
])("'$path' lands at '$lands'", ({ path, lands }) => {
  expect(landingOf(`${folder}/${path}`)).toBe(join(folder, lands));
});

test("a loop ends, within itself", () => {
  expect(landingOf(join(folder, "one"))).toMatch(/\/(one|two)$/);
});

test("a thousand missing names take no time that others would wait for", () => {
  const deep = `${folder}/${"x/".repeat(1900)}y`;
  const began = performance.now();
  for (let times = 0; times < 100; times += 1) landingOf(deep);
  expect(performance.now() - began).toBeLessThan(2000);
});
