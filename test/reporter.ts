import { existsSync, readFileSync, rmSync } from "node:fs";
import { relative } from "node:path";
import type { Reporter, SerializedError, TestCase, TestModule } from "vitest/node";
import type { Skip } from "./skips.ts";

/**
 * Prints, after everything else, one line per skip, one per failed test with the beginning of its error, and the closing
 * line `N passed, N failed, N skipped`. A log that was cut still says at its end what failed.
 */
export default class ClosingReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const skips = distinct([...recordedSkips(), ...tests.filter(isSkipped).map(skipLine)]);
    const passed = tests.filter((test) => test.result().state === "passed").length;
    const failed = tests.filter((test) => test.result().state === "failed");
    // A file that does not load, a hook that throws and a stray rejection have no test of their own.
    const broken = modules.reduce((sum, module) => sum + errorsOf(module), 0) + unhandled.length;
    const closing = `${passed} passed, ${failed.length + broken} failed, ${skips.length} skipped`;
    // At exit: the other reporter and the clean-up of the run have then said all they have to say.
    const lines = [...skips, ...failed.map(failLine), closing];
    process.once("exit", () => process.stdout.write(`\n${lines.join("\n")}\n`));
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

function failLine(test: TestCase): string {
  const why = test.result().errors?.[0]?.message ?? "no error given";
  const line = `${relative(process.cwd(), test.module.moduleId)} > ${test.fullName} — ${why}`;
  // A property's seed stands in the second line of its message.
  return `FAIL ${line.replaceAll("\n", " ").slice(0, 600)}`;
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
