import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../../../..", import.meta.url));

const FILES = {
  "hook.test.ts": `import { afterAll, beforeAll, describe, test } from "vitest";
describe("one", () => { beforeAll(() => { throw new Error("it broke before"); }); test("left out", () => {}); });
describe("two", () => { afterAll(() => { throw new Error("it broke after"); }); test("was run", () => {}); });`,
  "file-hook.test.ts": `import { beforeAll, test } from "vitest";
beforeAll(() => { throw new Error("the file broke"); }); test("not run", () => {});`,
  "import.test.ts": 'import "./nowhere.ts";',
  "empty.test.ts": "export {};",
  "stray.test.ts": `import { test } from "vitest"; test("strays", () => { void Promise.reject(new Error("a stray one")); });`,
  "skips.test.ts": `import { appendFileSync } from "node:fs"; import { describe, expect, test } from "vitest";
appendFileSync(process.env.SUBSTRATE_TEST_SKIPS, JSON.stringify({ what: "gated", why: "it is Tuesday" }) + "\\n");
describe.skip("gated", () => test("by the day", () => {}));
test("fails", () => expect(1).toBe(2)); test.skip("silent", () => {});`,
};

test("whatever fails has its FAIL line, whatever is skipped its reason, and the counts are those of the lines", () => {
  const folder = mkdtempSync(join(tmpdir(), "substrate-reporter-"));
  try {
    symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
    for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text);
    const vitest = [
      join(ROOT, "node_modules/vitest/vitest.mjs"),
      "run",
      "--root",
      folder,
      "--maxWorkers=1",
      "--no-isolate",
    ];
    const env = { ...process.env, SUBSTRATE_TEST_SKIPS: join(folder, "skips.jsonl"), VITEST: undefined };
    const reporter = `--reporter=${join(ROOT, "test/support/run/reporter.ts")}`;
    const ran = spawnSync(process.execPath, [...vitest, reporter], { cwd: folder, env, encoding: "utf8" });
    expect(ran.status).toBe(1);
    const lines = ran.stdout.trimEnd().split("\n");
    expect(lines.filter((line) => line.startsWith("FAIL")).sort()).toEqual([
      expect.stringMatching(/^FAIL empty.test.ts — No test suite found/),
      "FAIL file-hook.test.ts — the file broke",
      "FAIL hook.test.ts > one — it broke before",
      "FAIL hook.test.ts > two — it broke after",
      expect.stringMatching(/^FAIL import.test.ts — .*nowhere/),
      "FAIL outside every test — a stray one",
      expect.stringMatching(/^FAIL skips.test.ts > fails — expected 1 to be 2/),
    ]);
    expect(lines.filter((line) => line.startsWith("SKIP")).sort()).toEqual([
      "SKIP file-hook.test.ts > not run — a hook before it failed",
      "SKIP gated — it is Tuesday",
      "SKIP hook.test.ts > one > left out — a hook before it failed",
      "SKIP skips.test.ts > gated > by the day — it is Tuesday",
      "SKIP skips.test.ts > silent — no reason given",
    ]);
    expect(lines.at(-1)).toBe("2 passed, 7 failed, 5 skipped");
  } finally {
    rmSync(folder, { recursive: true });
  }
});
