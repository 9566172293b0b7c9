import { existsSync } from "node:fs";
import { basename, resolve } from "node:path";
import { type CaseResult, judgeCase, plainVerdict } from "../../../broker/policy-cases/judge-case.ts";
import type { PolicyCase } from "../../../broker/policy-cases/parse-case.ts";
import { type FoundCases, readCases } from "../../../broker/policy-cases/read-cases.ts";
import { type CompiledPolicy, loadPolicy } from "../../../broker/policy/index.ts";
import type { CommandRule, PolicyDocument } from "../../../schemas/generated/types.ts";
import { caseFolders, everyPolicyFile, policyFile } from "../terminal/policy-files.ts";
import {
  Complaint,
  harmless,
  harmlessLine,
  printJson,
  printLine,
  type Terminal,
} from "../terminal/terminal.ts";

export type TestOptions = { readonly cases?: string; readonly json?: boolean };

/** What one policy's tests came to. `problems`: why it does not load, or what among its cases is none. */
type Report = {
  readonly policy: string;
  readonly file: string;
  readonly examples: number;
  readonly cases: number;
  readonly failed: readonly CaseResult[];
  readonly problems: readonly string[];
};

/**
 * Runs the cases of one policy, or of every policy. A rule's own `match` and `not_match` are tried when the policy loads.
 * Exit 1 when a case is not kept, cannot be read, or the policy does not load. Needs no broker.
 */
export function testPolicies(terminal: Terminal, name: string | undefined, options: TestOptions): number {
  if (name === undefined && options.cases !== undefined)
    throw new Complaint("--cases needs the name or the file of one policy");
  const files = name === undefined ? everyPolicyFile(terminal) : [policyFile(terminal, name)];
  const reports = files.map((file) => testOne(terminal, file, options.cases));
  if (options.json === true) printJson(terminal, reports);
  else for (const report of reports) print(terminal, report);
  return reports.every(passed) ? 0 : 1;
}

function testOne(terminal: Terminal, file: string, chosen: string | undefined): Report {
  const policy = basename(file, ".yaml");
  const loaded = loadPolicy(file, terminal.installation.policies);
  if ("problems" in loaded) {
    const problems = loaded.problems.map(({ text }) => `The policy does not load: ${text}`);
    return { policy, file, examples: 0, cases: 0, failed: [], problems };
  }
  const found = findCases(terminal, file, chosen);
  return {
    policy,
    file,
    examples: examplesIn(loaded.ok.document),
    cases: found.cases.length,
    failed: failures(loaded.ok, found),
    problems: found.problems.map(({ text }) => text),
  };
}

function findCases(terminal: Terminal, file: string, chosen: string | undefined): FoundCases {
  const folders = chosen === undefined ? caseFolders(terminal, file) : [resolve(terminal.cwd, chosen)];
  if (chosen !== undefined && !folders.every((folder) => existsSync(folder)))
    throw new Complaint(`Cannot find the cases folder '${folders.join("', '")}'`);
  const found = folders.map(readCases);
  return {
    cases: found.flatMap(({ cases }) => cases),
    problems: found.flatMap(({ problems }) => problems),
  };
}

function failures(policy: CompiledPolicy, { cases }: FoundCases): readonly CaseResult[] {
  return cases.map((one) => judgeCase(policy, asEnforced(policy, one))).filter(({ kept }) => !kept);
}

/** Once a policy enforces, what a case says that it would do is what it does. */
function asEnforced({ mode }: CompiledPolicy, one: PolicyCase): PolicyCase {
  if (mode === "observe") return one;
  return { ...one, document: { ...one.document, verdict: plainVerdict(one.document.verdict) } };
}

/** How many `match` and `not_match` examples the rules have. */
function examplesIn({ commands = {} }: PolicyDocument): number {
  const { allowed = [], denied = [], isolated = [], ask = [], warn = [] } = commands;
  return [allowed, denied, isolated, ask, warn].flat().reduce((sum, rule) => sum + examplesOf(rule), 0);
}

function examplesOf(rule: CommandRule): number {
  return typeof rule === "string" ? 0 : (rule.match ?? []).length + (rule.not_match ?? []).length;
}

function passed({ failed, problems }: Report): boolean {
  return failed.length === 0 && problems.length === 0;
}

function print(terminal: Terminal, report: Report): void {
  printLine(terminal, `${report.policy}: ${summary(report)}`);
  for (const problem of report.problems) printLine(terminal, `  ${harmlessLine(problem)}`);
  for (const { place, command, expected, received } of report.failed) {
    printLine(terminal, `  ${harmlessLine(place)}`);
    printLine(terminal, `    command   ${harmless(command)}`);
    printLine(terminal, `    expected  ${harmlessLine(expected)}`);
    printLine(terminal, `    received  ${harmlessLine(received)}`);
  }
}

/** Where nothing was tried nothing is said to hold. */
function summary({ cases, examples, failed, problems }: Report): string {
  const broken =
    problems.length === 0 ? "" : `${problems.length} ${problems.length === 1 ? "problem" : "problems"}, `;
  const tried =
    cases === 0 ? "no cases: nothing was tested" : `${cases - failed.length} of ${cases} cases passed`;
  return `${broken}${tried}${examples === 0 ? "" : `, ${examples} examples of its rules passed`}`;
}
