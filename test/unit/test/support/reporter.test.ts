import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";

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

const SECOND_TIME = `import { expect, test } from "vitest";
let runs = 0; test("passes the second time", () => { runs += 1; expect(runs).toBe(2); }); test("passes", () => {});`;

/** Fails in the first run of all: what it counts outlives the process. */
const FIRST_TIME = `import { appendFileSync, readFileSync } from "node:fs"; import { expect, test } from "vitest";
test("one (of all) > fails once", () => {
  appendFileSync("runs", "."); expect(readFileSync("runs", "utf8").length).not.toBe(1);
});`;

/** Fails after its neighbour, and never alone. */
const AFTER = `import { expect, test } from "vitest"; let left = false;
test("leaves something", () => { left = true; });
test("finds it", () => { const found = left; left = false; expect(found).toBe(false); });`;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "substrate-reporter-"));
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
});
afterEach(() => rmSync(folder, { recursive: true }));

test("whatever fails has its FAIL line, whatever is skipped its reason, and the counts are those of the lines", () => {
  const { status, lines } = run(FILES);
  expect(status).toBe(1);
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
});

test("a test that passes the second time has its line UNSTEADY", () => {
  const { status, lines } = run({ "test/integration/race.test.ts": SECOND_TIME }, "--retry=1");
  expect([status, ...lines.slice(-2)]).toEqual([
    0,
    expect.stringMatching(
      /^UNSTEADY test\/integration\/race.test.ts > passes the second time — expected 1 to be 2/,
    ),
    "2 passed, 0 failed, 0 skipped",
  ]);
});

test("a wall's test that passes the second time has failed, unless it then holds eight times alone", () => {
  const { status, lines } = run({ "test/security/race.test.ts": SECOND_TIME }, "--retry=1", "test/security");
  expect([status, ...lines.slice(-2)]).toEqual([
    1,
    expect.stringMatching(/^FAIL test\/security\/race.test.ts > passes the second time — expected 1 to be 2/),
    "1 passed, 1 failed, 0 skipped",
  ]);
});

// Ten starts of vitest, one after another.
test("a wall's test that then holds eight times alone is UNSTEADY", { timeout: 300_000 }, () => {
  const { status, lines } = run({ "test/security/busy.test.ts": FIRST_TIME }, "--retry=1", "test/security");
  expect([status, ...lines.slice(-2)]).toEqual([
    0,
    expect.stringMatching(
      /^UNSTEADY test\/security\/busy.test.ts > one \(of all\) > fails once — expected 1 not to be 1/,
    ),
    "1 passed, 0 failed, 0 skipped",
  ]);
  expect(readFileSync(join(folder, "runs"), "utf8")).toHaveLength(2 + 1 + 8);
});

test("a wall's test that fails after its neighbour alone has failed", () => {
  const { status, lines } = run({ "test/security/after.test.ts": AFTER }, "--retry=1", "test/security");
  expect([status, lines.at(-1)]).toEqual([1, "1 passed, 1 failed, 0 skipped"]);
});

/** Runs these files under the reporter. */
function run(files: Readonly<Record<string, string>>, ...more: readonly string[]) {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const vitest = [
    join(ROOT, "node_modules/vitest/vitest.mjs"),
    "run",
    "--root",
    folder,
    "--maxWorkers=1",
    "--no-isolate",
    `--reporter=${join(ROOT, "test/support/run/reporter.ts")}`,
  ];
  const env = { ...process.env, SUBSTRATE_TEST_SKIPS: join(folder, "skips.jsonl"), VITEST: undefined };
  const ran = spawnSync(process.execPath, [...vitest, ...more], { cwd: folder, env, encoding: "utf8" });
  return { status: ran.status, lines: ran.stdout.trimEnd().split("\n") };
}
