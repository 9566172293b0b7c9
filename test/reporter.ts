import { existsSync, readFileSync, rmSync } from "node:fs";
import type { Reporter, SerializedError, TestCase, TestModule } from "vitest/node";
import type { Skip } from "./skips.ts";

/** Prints, after everything else, one line per skip and the closing line `N passed, N failed, N skipped`. */
export default class ClosingReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const skips = distinct([...recordedSkips(), ...tests.filter(isSkipped).map(skipLine)]);
    const passed = tests.filter((test) => test.result().state === "passed").length;
    const failed = tests.filter((test) => test.result().state === "failed").length;
    // A file that does not load, a hook that throws and a stray rejection have no test of their own.
    const broken = modules.reduce((sum, module) => sum + errorsOf(module), 0) + unhandled.length;
    const closing = `${passed} passed, ${failed + broken} failed, ${skips.length} skipped`;
    // At exit: the other reporter and the clean-up of the run have then said all they have to say.
    process.once("exit", () => process.stdout.write(`\n${[...skips, closing].join("\n")}\n`));
  }
}

function isSkipped(test: TestCase): boolean {
  return test.result().state === "skipped";
}

function skipLine(test: TestCase): string {
  const result = test.result();
  const note = result.state === "skipped" ? result.note : undefined;
  if (note?.includes(" — ") === true) return `SKIP ${note}`;
  return `SKIP ${test.fullName} — ${note ?? "no reason given"}`;
}

function recordedSkips(): string[] {
  const file = process.env["SUBSTRATE_TEST_SKIPS"];
  if (file === undefined || !existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n").filter(Boolean);
  rmSync(file, { force: true });
  return lines.map((line) => JSON.parse(line) as Skip).map(({ what, why }) => `SKIP ${what} — ${why}`);
}

function distinct(lines: readonly string[]): string[] {
  return [...new Set(lines)];
}

function errorsOf(module: TestModule): number {
  const suites = [...module.children.allSuites()];
  return module.errors().length + suites.reduce((sum, suite) => sum + suite.errors().length, 0);
}
