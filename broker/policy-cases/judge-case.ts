import type { Verdict } from "../../schemas/generated/types.ts";
import {
  type CompiledPolicy,
  type Decision,
  decide,
  type ReadCommand,
  readArgv,
  readShell,
  type Where,
  withVariables,
} from "../policy/index.ts";
import type { PolicyCase } from "./parse-case.ts";

/** Home and default folder of every case's command. */
export const CASE_HOME = "/home/example";
export const CASE_PROJECT = "/projects/example";

/** The result of a case. `expected` and `received` are a line each, for people. */
export type CaseResult = {
  readonly place: string;
  readonly command: string;
  readonly kept: boolean;
  readonly expected: string;
  readonly received: string;
};

/** Decides about a case's command by a policy. Pure. */
export function decideCase(policy: CompiledPolicy, { document }: PolicyCase): Decision {
  const where: Where = {
    project: CASE_PROJECT,
    home: CASE_HOME,
    cwd: document.cwd ?? CASE_PROJECT,
  };
  const holds = document.require_approval === true ? requiring(policy) : policy;
  return decide(holds, withVariables(commandOf(document), document.env ?? {}), where);
}

/** Returns the policy with `approval.require`: commands outside `approval.auto_approve` ask. */
function requiring(policy: CompiledPolicy): CompiledPolicy {
  const { document } = policy;
  return { ...policy, document: { ...document, approval: { ...document.approval, require: true } } };
}

/** Whether the policy keeps the case. Pure. */
export function judgeCase(policy: CompiledPolicy, one: PolicyCase): CaseResult {
  const decision = decideCase(policy, one);
  const { argv, command = "" } = one.document;
  return {
    place: one.place,
    command: argv === undefined ? command : JSON.stringify(argv),
    kept: isKept(one, decision),
    expected: expectedWords(one),
    received: receivedWords(decision),
  };
}

function commandOf({ argv, command = "", shell = "sh" }: PolicyCase["document"]): ReadCommand {
  return argv === undefined ? readShell(command, shell) : readArgv(argv);
}

function isKept({ document }: PolicyCase, { verdict, rule, warnings }: Decision): boolean {
  const { rule: wanted, warns } = document;
  return (
    (document.verdict === verdict || document.verdict === plainVerdict(verdict)) &&
    (wanted === null
      ? rule === null
      : wanted.list === rule?.list &&
        (wanted.pattern === undefined || wanted.pattern === rule.pattern) &&
        (wanted.fragment === undefined || wanted.fragment === rule.fragment)) &&
    (warns === undefined ||
      sameList(
        warns,
        warnings.map(({ pattern }) => pattern),
      ))
  );
}

/** Returns the verdict of enforce mode. */
export function plainVerdict(verdict: Verdict): Verdict {
  switch (verdict) {
    case "would_deny":
      return "deny";
    case "would_ask":
      return "ask";
    case "would_isolate":
      return "isolate";
    default:
      return verdict;
  }
}

function sameList(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((text, index) => text === other[index]);
}

function expectedWords({ document }: PolicyCase): string {
  const { verdict, rule, warns } = document;
  const about = rule?.fragment === undefined ? "" : ` about '${rule.fragment}'`;
  const pattern = rule?.pattern === undefined ? "" : `'${rule.pattern}' in `;
  const decided = rule === null ? "no rule matches" : `${pattern}${rule.list}${about}`;
  return `${verdict}: ${decided}${warnedWords(warns ?? [])}`;
}

function receivedWords({ verdict, rule, warnings }: Decision): string {
  const decided =
    rule === null
      ? "no rule matches"
      : `'${rule.pattern}' in ${rule.list} about '${rule.fragment}', ${rule.source}`;
  return `${verdict}: ${decided}${warnedWords(warnings.map(({ pattern }) => pattern))}`;
}

function warnedWords(patterns: readonly string[]): string {
  return patterns.length === 0 ? "" : `; warns of ${patterns.map((pattern) => `'${pattern}'`).join(", ")}`;
}
