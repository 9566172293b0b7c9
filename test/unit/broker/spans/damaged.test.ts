import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Trace } from "../../../../broker/spans/trace.ts";
import { ranSpan, type TestTrace, testTrace } from "../../../support/trace/traces.ts";

let at: TestTrace;

beforeEach(async () => {
  at = testTrace();
  const trace = await at.open();
  for (const number of [1, 2, 3]) await ranSpan(trace, `spn_${number}`);
  await trace.end();
});

afterEach(() => at.remove());

function lines(): string[] {
  return readFileSync(at.path, "utf8").trimEnd().split("\n");
}

function put(changed: readonly string[]): void {
  writeFileSync(at.path, `${changed.join("\n")}\n`);
}

/** The last line of the second span, as long as before. */
function damage(): void {
  put(lines().map((line, index) => (index === 3 ? line.replace('"ts"', '"ts:') : line)));
}

function idsOf(trace: Trace): readonly string[] {
  const { spans } = trace.list({ agent: undefined, session: undefined, before: undefined, limit: 100 });
  return spans.map(({ span_id: id }) => id);
}

test("a span whose line is no JSON any more is told of and left out, and the others are listed", async () => {
  damage();
  const trace = await at.open();
  expect(idsOf(trace)).toEqual(["spn_3", "spn_1"]);
  expect(trace.find("spn_2")).toBeUndefined();
  await trace.end();
  expect(at.faults).toContainEqual(expect.stringContaining("not the one that was written"));
});

test("a line that stands in another's place is not shown as that one", async () => {
  const [one, two, three, four, ...rest] = lines() as [string, string, string, string, ...string[]];
  put([one, four, three, two, ...rest]);
  const trace = await at.open();
  expect(idsOf(trace)).toEqual(["spn_3"]);
  await trace.end();
});

test("a trace with such a line is indexed anew around it", async () => {
  damage();
  rmSync(join(at.folder, "db"), { recursive: true });
  const trace = await at.open();
  // Of the second its first line is there: nobody saw its end.
  expect(idsOf(trace)).toEqual(["spn_3", "spn_2", "spn_1"]);
  expect(trace.find("spn_2")).toMatchObject({ outcome: "lost" });
  await trace.end();
  expect(at.faults).toContainEqual(expect.stringContaining("is not indexed"));
});

test("a database that LMDB did not write, or that was cut, is refused in words, and one that is gone is made again", async () => {
  const file = join(at.folder, "db/data.mdb");
  const bytes = readFileSync(file);
  const whole = Buffer.from(bytes);
  writeFileSync(file, bytes.fill(0xab, 0, 8192));
  await expect(at.open()).rejects.toThrow(/data\.mdb' is damaged\. Move the folder away/);
  writeFileSync(file, bytes.subarray(0, 3));
  await expect(at.open()).rejects.toThrow("is damaged");
  // Behind the end of a mapped file lies a SIGBUS.
  for (const size of [4096, 8192]) {
    writeFileSync(file, whole.subarray(0, size));
    await expect(at.open()).rejects.toThrow("is damaged");
  }
  rmSync(join(at.folder, "db"), { recursive: true });
  const trace = await at.open();
  expect(idsOf(trace)).toEqual(["spn_3", "spn_2", "spn_1"]);
  await trace.end();
});
