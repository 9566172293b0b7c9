import type { CommandRule, PolicyDocument } from "../../schemas/generated/types.ts";
import type { CompiledPolicy, Where } from "./decision.ts";
import { policyHash } from "./hash.ts";
import { patternComplaint } from "../../world/backend.ts";
import { notYet } from "./not-yet.ts";
import { readPattern } from "./pattern.ts";
import { prepare } from "./prepare.ts";
import { readShell } from "./read.ts";
import {
  indexRules,
  matchingPipes,
  matchingRules,
  type Rule,
  type RuleList,
  type RuleSet,
} from "./rule-set.ts";

/** Where the keys of a document stand in its file. */
export interface Places {
  /** The file's name, as it stands in `rule.source`. */
  readonly file: string;
  /** Line of a key or list item, from 1; that of the nearest key above it when it is absent. */
  lineOf(path: readonly (string | number)[]): number;
}

/** Why a valid document is no policy that can be used. */
export interface CompileProblem {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

export type Compiled = { readonly ok: CompiledPolicy } | { readonly problems: readonly CompileProblem[] };

/** The lists, from the strictest: of two rules that match, the one that comes first here is named. */
const LISTS: readonly RuleList[] = [
  "commands.denied",
  "commands.ask",
  "commands.isolated",
  "commands.warn",
  "commands.allowed",
  "approval.auto_approve",
];

/** Where a rule's own examples are read. */
const EXAMPLE_PLACE: Where = {
  project: "/projects/example",
  home: "/home/example",
  cwd: "/projects/example",
};

/** Makes a validated document ready for decisions, once. Rules that fail their own examples are problems. Pure. */
export function compilePolicy(document: PolicyDocument, places: Places): Compiled {
  const rules: Rule[] = [];
  const problems: CompileProblem[] = [];
  for (const list of LISTS) {
    for (const [index, written] of rulesIn(document, list).entries()) {
      const path = [...list.split("."), index];
      const rule = compileRule(written, list, rules.length, `${places.file}:${places.lineOf(path)}`);
      rules.push(rule);
      problems.push(
        ...[...emptyStages(rule), ...failedExamples(rule, written)].map((message) => ({ path, message })),
      );
    }
  }
  const { notes, refusals } = notYet(document);
  problems.push(...refusals, ...unusablePatterns(document));
  if (problems.length > 0) return { problems };
  return { ok: assemble(document, places, rules, notes) };
}

function unusablePatterns({ fs }: PolicyDocument): readonly CompileProblem[] {
  return (["deny_read", "deny_write"] as const).flatMap((list) =>
    (fs?.[list] ?? []).flatMap((pattern, index) => {
      const complaint = patternComplaint(pattern);
      if (complaint === undefined) return [];
      return [{ path: ["fs", list, index], message: `Cannot use '${pattern}' in fs.${list}: ${complaint}` }];
    }),
  );
}

function assemble(
  document: PolicyDocument,
  places: Places,
  rules: readonly Rule[],
  notes: readonly string[],
): CompiledPolicy {
  const source = (...path: string[]): string => `${places.file}:${places.lineOf(path)}`;
  const set: RuleSet = {
    ...indexRules(rules),
    allowedInWords: allowedInWords(rules),
    sources: {
      allowed: source("commands", "allowed"),
      opaque: source("commands", "opaque"),
      operators: source("commands", "shell_operators"),
      require: source("approval", "require"),
    },
  };
  return {
    id: document.id,
    name: document.name,
    mode: document.mode ?? "observe",
    selectable: document.selectable ?? false,
    hash: policyHash(document),
    source: places.file,
    document,
    rules: set,
    notes,
  };
}

function rulesIn(document: PolicyDocument, list: RuleList): readonly CommandRule[] {
  const { commands, approval } = document;
  const lists: Readonly<Record<RuleList, readonly CommandRule[] | undefined>> = {
    "commands.denied": commands?.denied,
    "commands.ask": commands?.ask,
    "commands.isolated": commands?.isolated,
    "commands.warn": commands?.warn,
    "commands.allowed": commands?.allowed,
    "approval.auto_approve": approval?.auto_approve,
  };
  return lists[list] ?? [];
}

function compileRule(written: CommandRule, list: RuleList, order: number, source: string): Rule {
  const pattern = typeof written === "string" ? written : written.pattern;
  const reason = typeof written === "string" ? undefined : written.reason;
  return { list, pattern, reason, source, order, stages: readPattern(pattern) };
}

function emptyStages(rule: Rule): string[] {
  const empty = /^\s*\||\|\s*\||\|\s*$/.test(rule.pattern);
  return empty ? [`'${rule.pattern}' has nothing on one side of its '|'`] : [];
}

function failedExamples(rule: Rule, written: CommandRule): string[] {
  if (typeof written === "string") return [];
  const missed = (written.match ?? []).filter((example) => !ruleMatches(rule, example));
  const caught = (written.not_match ?? []).filter((example) => ruleMatches(rule, example));
  return [
    ...missed.map((example) => `'${rule.pattern}' must match its own example '${example}', and does not`),
    ...caught.map((example) => `'${rule.pattern}' must not match its own example '${example}', and does`),
  ];
}

/** Does this one rule match some command of the example? */
function ruleMatches(rule: Rule, example: string): boolean {
  const read = readShell(example);
  const only: RuleSet = { ...indexRules([rule]), allowedInWords: "", sources: NO_SOURCES };
  const prepared = read.fragments.map((command) => prepare(command, EXAMPLE_PLACE));
  return (
    prepared.some((command) => command !== null && matchingRules(only, command).length > 0) ||
    read.pipelines.some((pipeline) => matchingPipes(only, pipeline, prepared).length > 0)
  );
}

const NO_SOURCES: RuleSet["sources"] = { allowed: "", opaque: "", operators: "", require: "" };
const SHOWN_PATTERNS = 5;

function allowedInWords(rules: readonly Rule[]): string {
  const patterns = rules
    .filter((rule) => rule.list === "commands.allowed")
    .map((rule) => `'${rule.pattern}'`);
  const more = patterns.length - SHOWN_PATTERNS;
  const shown = patterns.slice(0, SHOWN_PATTERNS).join(", ");
  return `only ${shown}${more > 0 ? ` and ${more} more` : ""}`;
}
