import { appendFileSync } from "node:fs";
import { TestRunner, test } from "vitest";

/** One thing that this machine cannot prove. */
export type Skip = { readonly what: string; readonly why: string };

/**
 * Names what this machine cannot prove; the run lists it at its end as `SKIP <what> — <why>`.
 *
 * Inside a test it also ends that test as skipped (it throws, like `context.skip()`): a skip is never a pass. In a hook
 * or while tests are collected it only writes the line, and the caller leaves the tests out.
 */
export function skip(what: string, why: string): void {
  const test = TestRunner.getCurrentTest();
  if (test !== undefined) test.context.skip(`${what} — ${why}`);
  recordSkip({ what, why });
}

/** Writes the line only. */
export function recordSkip(entry: Skip): void {
  const file = process.env["SUBSTRATE_TEST_SKIPS"];
  if (file === undefined)
    throw new Error("SUBSTRATE_TEST_SKIPS is not set. Run the tests with test/vitest.config.ts");
  appendFileSync(file, `${JSON.stringify(entry)}\n`);
}

/** One skipped test, for a file that has no other one here: a file without any counts as failed. */
export function skippedTest(what: string, why: string): void {
  test(`${what}`, () => skip(what, why));
}
