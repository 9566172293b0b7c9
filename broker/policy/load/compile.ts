import type { CommandRule, PolicyDocument } from "../../../schemas/generated/types.ts";
import { type PolicyNet, readNet } from "../../network/names/entries.ts";
import type { CompiledPolicy, Where } from "../rules/decision.ts";
import type { Written } from "../rules/written.ts";
import { patternComplaint } from "../../../world/backend.ts";
import { readPattern } from "../rules/pattern.ts";
import { indexRules } from "../rules/rule-set.ts";
import {
  matchingPipes,
  matchingRules,
  type PassedRules,
  type Rule,
  type RuleList,
  type RuleSet,
} from "../rules/rule-set.ts";
import { startsOf } from "../rules/start-names.ts";
import { prepare } from "../rules/prepare.ts";
import { readShell } from "../shell/read.ts";
import { lostDenials } from "./lost-denials.ts";
import { createHash } from "node:crypto";

/** Positions of a document's keys in its file. */
export interface Places {
  /** The file's name. */
  readonly file: string;
  readonly at: Written["at"];
  readonly base: Written | null;
}

/** Why a valid document cannot be used as a policy. */
export interface CompileProblem {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

export type Compiled = { readonly ok: CompiledPolicy } | { readonly problems: readonly CompileProblem[] };

/** The lists, strictest first: of two matching rules, a reply names the rule of the earlier list. */
const LISTS: readonly RuleList[] = [
  "commands.denied",
  "commands.ask",
  "commands.isolated",
  "commands.warn",
  "commands.allowed",
  "approval.auto_approve",
];

/** Compiles a validated document for decisions, once. A rule that fails its own examples is a problem. */
export function compilePolicy(document: PolicyDocument, places: Places, passed: PassedRules): Compiled {
  const rules: Rule[] = [];
  const problems: CompileProblem[] = [];
  for (const list of LISTS) {
    const keys = list.split(".");
    for (const [index, written] of rulesIn(document, list).entries()) {
      const path = [...keys, index];
      const { file, line } = places.at(path);
      const place = { list, line, order: rules.length, source: `${file}:${line}` };
      const [rule, found] = readRule(written, place, passed);
      rules.push(rule);
      problems.push(...found.map((message) => ({ path, message })));
    }
  }
  const { net, notes: idle, problems: unusableEntries } = readNet(document, places);
  problems.push(...withoutOwnNetwork(document), ...unusablePatterns(document), ...unusableEntries);
  if (problems.length > 0) return { problems };
  const notes = [...lostDenials(document), ...notYet(document), ...idle];
  return { ok: assemble(document, places, { rules, net, notes }) };
}

/** Formats a source as in `rule.source`: `default.yaml:31`. */
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
}

function assemble(document: PolicyDocument, places: Places, { rules, net, notes }: Parts): CompiledPolicy {
  const source = (...path: string[]): string => sourceOf(places, path);
  const set: RuleSet = {
    ...indexRules(rules),
    allowedInWords: allowedInWords(rules),
    sources: {
      allowed: source("commands", "allowed"),
      opaque: source("commands", "opaque"),
      operators: source("commands", "shell_operators"),
      require: source("approval", "require"),
      read: source("fs", "read"),
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
    hash: policyHash(document),
    source: places.file,
    document,
    at: places.at,
    base: places.base,
    rules: set,
    starts: startsOf(set, document.approval?.require === true),
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

/** Returns a rule and the complaints about the rule. */
function readRule(written: CommandRule, place: RulePlace, passed: PassedRules): [Rule, readonly string[]] {
  const known = passed.stagesOf(place.list, written);
  const pattern = typeof written === "string" ? written : written.pattern;
  const reason = typeof written === "string" ? undefined : written.reason;
  const rule = { ...place, pattern, reason, stages: known ?? readPattern(pattern) };
  if (known !== undefined) return [rule, []];
  const found = complaints(rule, written);
  if (found.length === 0) passed.remember(place.list, written, rule.stages);
  return [rule, found];
}

function complaints(rule: Rule, written: CommandRule): readonly string[] {
  return [...emptyStages(rule), ...failedExamples(rule, written)];
}

function emptyStages(rule: Rule): string[] {
  const empty = /^\s*\||\|\s*\||\|\s*$/.test(rule.pattern);
  return empty ? [`Cannot read '${rule.pattern}': one side of its '|' is empty`] : [];
}

const SHOWN_PATTERNS = 5;

function allowedInWords(rules: readonly Rule[]): string {
  const allowed = rules.filter((rule) => rule.list === "commands.allowed");
  const more = allowed.length - SHOWN_PATTERNS;
  const shown = allowed
    .slice(0, SHOWN_PATTERNS)
    .map(({ pattern }) => `'${pattern}'`)
    .join(", ");
  return `only ${shown}${more > 0 ? ` and ${more} more` : ""}`;
}

/** Folders in which a rule's own examples are read. */
const EXAMPLE_PLACE: Where = {
  project: "/projects/example",
  home: "/home/example",
  cwd: "/projects/example",
};

/** Checks a rule against its own `match` and `not_match`; returns a sentence for each failed example. */
function failedExamples(rule: Rule, written: CommandRule): readonly string[] {
  if (typeof written === "string") return [];
  const missed = (written.match ?? []).filter((example) => !ruleMatches(rule, example));
  const caught = (written.not_match ?? []).filter((example) => ruleMatches(rule, example));
  return [
    ...missed.map((example) => `'${rule.pattern}' must match its own example '${example}', but does not`),
    ...caught.map((example) => `'${rule.pattern}' must not match its own example '${example}', but does`),
  ];
}

/** Whether the rule matches some command of the example. */
function ruleMatches(rule: Rule, example: string): boolean {
  const read = readShell(example);
  const only: RuleSet = { ...indexRules([rule]), ...NOTHING_ELSE };
  const prepared = read.fragments.map((command) => prepare(command, EXAMPLE_PLACE));
  return (
    prepared.some((command) => command !== null && matchingRules(only, command).length > 0) ||
    read.pipelines.some((pipeline) => matchingPipes(only, pipeline, prepared).length > 0)
  );
}

const NOTHING_ELSE: Pick<RuleSet, "allowedInWords" | "sources"> = {
  allowedInWords: "",
  sources: {
    allowed: "",
    opaque: "",
    operators: "",
    require: "",
    read: "",
    write: "",
    denyWrite: "",
    denyRead: "",
    memory: "",
    timeout: "",
  },
};

/** `sha256:` and hex over the document's canonical JSON: keys sorted, no blanks. Layout and comments do not count. */
function policyHash(document: object): string {
  return `sha256:${createHash("sha256").update(canonicalJson(document)).digest("hex")}`;
}

function canonicalJson(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${entries.map(([key, part]) => `${JSON.stringify(key)}:${canonicalJson(part)}`).join(",")}}`;
}

/**
 * Keys that this version does not carry out as written.
 *
 * - `stricter`: the key is ignored, so less is possible than the policy says. Noted.
 * - `vector`: the reply's `isolation` reports the feature, and `world.require` insists on the feature. Noted.
 * - `nothing`: no command is decided or run otherwise. Noted.
 */
interface NotYetRow {
  readonly key: string;
  readonly effect: "stricter" | "vector" | "nothing";
  /** Whether the document sets the key. */
  readonly asked: (document: PolicyDocument) => boolean;
  readonly sentence: string;
}

const ROWS: readonly NotYetRow[] = [
  {
    key: "net.dns.pinned",
    effect: "stricter",
    asked: ({ net }) => net?.dns?.pinned === false,
    sentence: "net.dns.pinned: false has no effect: only the world's own DNS stub answers names",
  },
  {
    key: "world.limits",
    effect: "vector",
    asked: ({ world }) => Object.keys(world?.limits ?? {}).length > 0,
    sentence:
      "world.limits: cpu and memory need a cgroup controller, pids and disk work without; 'isolation' in each reply shows what is available, `world status` the limits in force, and world.require: [cgroup] refuses commands without all of them",
  },
  {
    key: "privacy",
    effect: "nothing",
    asked: ({ privacy }) => privacy !== undefined,
    sentence: "privacy has no effect yet: the index of files is not built yet",
  },
];

/** Returns the notes about keys of a document that are not carried out as written. */
function notYet(document: PolicyDocument): readonly string[] {
  return ROWS.filter((row) => row.asked(document)).map((row) => row.sentence);
}

/** Keys that need a network of the world's own: nothing passes through the broker in the host's network. */
const OF_OWN_NETWORK: readonly {
  readonly path: readonly string[];
  readonly asked: (document: PolicyDocument) => boolean;
}[] = [
  { path: ["net", "allowed"], asked: ({ net }) => net?.allowed !== undefined },
  { path: ["net", "dns"], asked: ({ net }) => net?.dns !== undefined },
  { path: ["net", "egress_budget"], asked: ({ net }) => net?.egress_budget !== undefined },
  { path: ["world", "publish"], asked: ({ world }) => (world?.publish ?? []).length > 0 },
  ...(["default", "shared"] as const).map((whose) => ({
    path: ["budgets", whose, "max_egress_bytes"],
    asked: ({ budgets }: PolicyDocument) => budgets?.[whose]?.max_egress_bytes !== undefined,
  })),
];

/** Refuses what no world in the host's network can keep, also where a key comes from the policy named by `extends`. */
function withoutOwnNetwork(document: PolicyDocument): readonly CompileProblem[] {
  if (document.world?.isolate_network !== false) return [];
  return OF_OWN_NETWORK.filter(({ asked }) => asked(document)).map(({ path }) => ({
    path,
    message: `Cannot keep ${path.join(".")} while world.isolate_network is false: in the host's network no connection passes through the broker. Remove one of the two`,
  }));
}
