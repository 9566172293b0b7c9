import type { CommandRule, PolicyDocument } from "../../schemas/generated/types.ts";
import { type PolicyNet, readNet } from "../network/names/entries.ts";
import type { CompiledPolicy, PolicyMemory } from "./decision.ts";
import { failedExamples } from "./examples.ts";
import type { Written } from "./extends.ts";
import { canonicalJson, policyHash } from "./hash.ts";
import { patternComplaint } from "../../world/backend.ts";
import { notYet } from "./not-yet.ts";
import { readPattern } from "./pattern.ts";
import { indexRules } from "./rule-index.ts";
import { readingOf, type Rule, type RuleList, type RuleSet } from "./rule-set.ts";
import { StartNames } from "./start-names.ts";

/** Where the keys of a document stand in its file. */
export interface Places {
  /** The file's name. */
  readonly file: string;
  readonly at: Written["at"];
  readonly base: Written | null;
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

/**
 * Makes a validated document ready for decisions, once. Rules that fail their own examples are problems. Pure.
 *
 * @param before what the last reading of the same file left: rules that are written the same way need no second look.
 */
export function compilePolicy(document: PolicyDocument, places: Places, before: PolicyMemory): Compiled {
  const rules: Rule[] = [];
  const problems: CompileProblem[] = [];
  let rulesBefore = 0;
  for (const list of LISTS) {
    const keys = list.split(".");
    const writtenBefore = before.policy === null ? [] : rulesIn(before.policy.document, list);
    const offset = rulesBefore - rules.length;
    rulesBefore += writtenBefore.length;
    for (const [index, written] of rulesIn(document, list).entries()) {
      const path = [...keys, index];
      const { file, line } = places.at(path);
      const source = `${file}:${line}`;
      const same = before.policy?.rules.all[rules.length];
      // As most are after an edit: a rule that is where it was needs no look at all.
      if (same?.source === source && offset === 0 && writtenBefore[index] === written) {
        rules.push(same);
        continue;
      }
      const [rule, found] = readRule(written, { list, line, order: rules.length, source }, before);
      rules.push(rule);
      problems.push(...found.map((message) => ({ path, message })));
    }
  }
  const { notes: missing, refusals } = notYet(document);
  const { net, notes: idle, problems: unusableEntries } = readNet(document, places);
  problems.push(...refusals, ...unusablePatterns(document), ...unusableEntries);
  if (problems.length > 0) return { problems };
  const notes = [...missing, ...idle];
  return { ok: assemble(document, places, { rules, net, notes, before }) };
}

/** As it stands in `rule.source`: `default.yaml:31`. */
export function sourceOf({ at }: Pick<Places, "at">, path: readonly (string | number)[]): string {
  const { file, line } = at(path);
  return `${file}:${line}`;
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

interface Parts {
  readonly rules: readonly Rule[];
  readonly net: PolicyNet;
  readonly notes: readonly string[];
  readonly before: PolicyMemory;
}

function assemble(
  document: PolicyDocument,
  places: Places,
  { rules, net, notes, before }: Parts,
): CompiledPolicy {
  const source = (...path: string[]): string => sourceOf(places, path);
  const set: RuleSet = {
    ...indexRules(rules, before.policy?.rules),
    allowedInWords: allowedInWords(rules),
    sources: {
      allowed: source("commands", "allowed"),
      opaque: source("commands", "opaque"),
      operators: source("commands", "shell_operators"),
      require: source("approval", "require"),
      write: source("fs", "write"),
      denyWrite: source("fs", "deny_write"),
      denyRead: source("fs", "deny_read"),
      memory: source("commands", "memory_programs"),
      timeout: source("commands", "timeout"),
    },
  };
  return {
    id: document.id,
    name: document.name,
    mode: document.mode ?? "observe",
    selectable: document.selectable ?? false,
    hash: policyHash(document, before.texts),
    source: places.file,
    document,
    at: places.at,
    base: places.base,
    rules: set,
    starts: new StartNames(set, document.approval?.require === true, before.policy?.starts),
    net,
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

type RulePlace = Pick<Rule, "list" | "line" | "order" | "source">;

/** A rule, and what speaks against it. One that is known was read and tried before, wherever it stood. */
function readRule(written: CommandRule, place: RulePlace, before: PolicyMemory): [Rule, readonly string[]] {
  const known = before.known[readingOf(place.list)];
  const text = canonicalJson(written, before.texts);
  const stages = known.get(text);
  const pattern = typeof written === "string" ? written : written.pattern;
  const reason = typeof written === "string" ? undefined : written.reason;
  const rule = { ...place, pattern, reason, stages: stages ?? readPattern(pattern) };
  if (stages !== undefined) return [rule, []];
  const found = complaints(rule, written);
  if (found.length === 0) remember(known, text, rule.stages);
  return [rule, found];
}

/** Of rules that an edit took away the oldest go first; one that goes too early is read once more. */
function remember(known: Map<string, Rule["stages"]>, text: string, stages: Rule["stages"]): void {
  const [oldest] = known.size < MOST_KNOWN ? [] : known.keys();
  if (oldest !== undefined) known.delete(oldest);
  known.set(text, stages);
}

function complaints(rule: Rule, written: CommandRule): readonly string[] {
  return [...emptyStages(rule), ...failedExamples(rule, written)];
}

function emptyStages(rule: Rule): string[] {
  const empty = /^\s*\||\|\s*\||\|\s*$/.test(rule.pattern);
  return empty ? [`'${rule.pattern}' has nothing on one side of its '|'`] : [];
}

const SHOWN_PATTERNS = 5;
/** Far beyond the rules that fit into a file, so that a policy can be sorted anew without all its examples being tried. */
const MOST_KNOWN = 20_000;

function allowedInWords(rules: readonly Rule[]): string {
  const allowed = rules.filter((rule) => rule.list === "commands.allowed");
  const more = allowed.length - SHOWN_PATTERNS;
  const shown = allowed
    .slice(0, SHOWN_PATTERNS)
    .map(({ pattern }) => `'${pattern}'`)
    .join(", ");
  return `only ${shown}${more > 0 ? ` and ${more} more` : ""}`;
}
