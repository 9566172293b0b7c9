import { existsSync, readFileSync, rmSync } from "node:fs";
import { relative } from "node:path";
import type { Reporter, SerializedError, TestCase, TestModule, TestSuite, Vitest } from "vitest/node";
import { holdsAlone, MOST_REPEATED } from "./again.ts";
import type { Skip } from "./skips.ts";

/**
 * Prints, after everything else, one line per skip, one per failure with the beginning of its error, and the closing
 * line `N passed, N failed, N skipped`. A log that was cut still says at its end what failed.
 *
 * A test that failed and then passed (`SUBSTRATE_TEST_RETRY`) has a line `UNSTEADY`. One in `test/security` runs again, with its file
 * and eight times alone: if it fails once more it has failed, for a wall that holds most of the time does not hold.
 */
export default class ClosingReporter implements Reporter {
  #vitest: Vitest | undefined;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  async onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): Promise<void> {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const recorded = recordedSkips();
    const skipped = tests.filter(isSkipped).map((test) => this.#skipLine(test, recorded));
    const skips = distinct([...recorded.map(({ what, why }) => `SKIP ${what} — ${why}`), ...skipped]);
    const retried = tests.filter((test) => test.diagnostic()?.flaky === true);
    const broken = await this.#brokenWalls(retried.filter(isWall));
    const unsteady = retried.filter((test) => !broken.includes(test)).map((test) => lineOf("UNSTEADY", test));
    if (broken.length > 0) process.exitCode = 1;
    const failures = [
      ...tests.filter((test) => test.result().state === "failed").map(failedTest),
      ...broken.map(failedTest),
      // A file that does not load, a hook that throws and a stray rejection have no test of their own.
      ...modules.flatMap(failedAround),
      ...unhandled.map((error) => failLine("outside every test", error)),
    ];
    const passed = tests.filter((test) => test.result().state === "passed").length - broken.length;
    const closing = `${passed} passed, ${failures.length} failed, ${skips.length} skipped`;
    // At exit: the other reporter and the clean-up of the run have then said all they have to say.
    const lines = [...skips, ...unsteady, ...failures, closing];
    process.once("exit", () => process.stdout.write(`\n${lines.join("\n")}\n`));
  }

  async #brokenWalls(unsteady: readonly TestCase[]): Promise<readonly TestCase[]> {
    const vitest = this.#vitest;
    if (vitest === undefined || unsteady.length > MOST_REPEATED) return unsteady;
    const broken: TestCase[] = [];
    for (const test of unsteady) if (!(await holdsAlone(test, vitest))) broken.push(test);
    return broken;
  }

  #skipLine(test: TestCase, recorded: readonly Skip[]): string {
    const result = test.result();
    const note = result.state === "skipped" ? result.note : undefined;
    if (note?.includes(" — ") === true) return `SKIP ${note}`;
    return `SKIP ${fileOf(test.module)} > ${test.fullName} — ${note ?? this.#whyLeftOut(test, recorded)}`;
  }

  /** A test that was left out when tests were collected has no note; what left it out recorded the reason. */
  #whyLeftOut(test: TestCase, recorded: readonly Skip[]): string {
    if (suitesOf(test).some(hasErrors)) return "a hook before it failed";
    const reason = recorded.find(({ what }) => test.fullName.startsWith(what));
    if (reason !== undefined) return reason.why;
    const pattern = this.#vitest?.config.testNamePattern;
    return pattern === undefined ? "no reason given" : `its name has no '${pattern.source}'`;
  }
}

function isSkipped(test: TestCase): boolean {
  return test.result().state === "skipped";
}

/** Everything that a test lies in, its file last. */
function suitesOf({ parent }: TestCase | TestSuite): readonly (TestSuite | TestModule)[] {
  return parent.type === "module" ? [parent] : [parent, ...suitesOf(parent)];
}

function hasErrors(suite: TestSuite | TestModule): boolean {
  return suite.errors().length > 0;
}

function isWall({ module }: TestCase): boolean {
  return fileOf(module).startsWith("test/security/");
}

function failedTest(test: TestCase): string {
  return lineOf("FAIL", test);
}

function lineOf(what: "FAIL" | "UNSTEADY", test: TestCase): string {
  return errorLine(`${what} ${fileOf(test.module)} > ${test.fullName}`, test.result().errors?.[0]);
}

function failedAround(module: TestModule): readonly string[] {
  const suites = [...module.children.allSuites()].flatMap((suite) =>
    suite.errors().map((error) => failLine(`${fileOf(module)} > ${suite.fullName}`, error)),
  );
  return [...module.errors().map((error) => failLine(fileOf(module), error)), ...suites];
}

function failLine(where: string, error: { readonly message: string } | undefined): string {
  return errorLine(`FAIL ${where}`, error);
}

function errorLine(begin: string, error: { readonly message: string } | undefined): string {
  // A property's seed stands in the second line of its message.
  return `${begin} — ${error?.message ?? "no error given"}`.replaceAll("\n", " ").slice(0, 600);
}

function fileOf(module: TestModule): string {
  return relative(process.cwd(), module.moduleId);
}

function recordedSkips(): readonly Skip[] {
  const file = process.env["SUBSTRATE_TEST_SKIPS"];
  if (file === undefined || !existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n").filter(Boolean);
  rmSync(file, { force: true });
  return lines.map((line) => JSON.parse(line) as Skip);
}

function distinct(lines: readonly string[]): string[] {
  return [...new Set(lines)];
}
