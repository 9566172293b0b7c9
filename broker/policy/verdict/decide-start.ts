/** Decides about a program started by a running command, whoever starts the program and under any name. Pure. */
import type { ProgramStart } from "../../../world/backend.ts";
import type { SimpleCommand } from "../words/command.ts";
import type { CompiledPolicy, DecisionRule, PolicyMode, Where } from "../rules/decision.ts";
import { asksForAll, keyRule, LISTED, named, VERDICTS } from "./findings.ts";
import { baseName } from "../words/inner.ts";
import { programMatches } from "../rules/match.ts";
import { prepare, type PreparedCommand } from "../rules/prepare.ts";
import { matchingRules, type Rule } from "../rules/rule-set.ts";
import { speaksOfStarts } from "../rules/start-names.ts";
import { isMany, readingsOf, type StartReading } from "./start-readings.ts";
import { isSystemFile } from "../rules/runner-programs.ts";

/** A reason to refuse, ask about or isolate a start. */
export interface StartFinding {
  readonly verdict: "deny" | "ask" | "isolate";
  readonly rule: DecisionRule;
  readonly policyId: string;
  /**
   * The command that the rule matched: the start itself or a command started in turn. Null for a command inside the program, or
   * if a key decided.
   */
  readonly command: SimpleCommand | null;
}

export interface StartDecision {
  readonly mode: PolicyMode;
  /** Strictest first; equal verdicts in the order found. */
  readonly found: readonly StartFinding[];
  /** Rules of `commands.warn`, each once. */
  readonly warnings: readonly StartWarning[];
}

export type StartWarning = Pick<StartFinding, "rule" | "command">;

const STRICTEST_FIRST = ["deny", "ask", "isolate"] as const;

/**
 * Judges a start. A refusing rule counts when any reading of any file matches; for `commands.allowed` and `approval.require` the
 * path of the requested file counts. Keys about the words of a command line (`shell_operators`, `opaque`) say nothing about
 * starts, and the world decides about writes. A step of a program's own work ({@link isOwnStep}) was judged with the program.
 */
export function decideStart(
  policies: readonly [CompiledPolicy, ...CompiledPolicy[]],
  start: ProgramStart,
  wheres: readonly [Where, ...Where[]],
): StartDecision {
  const mode = policies.some((policy) => policy.mode === "enforce") ? "enforce" : "observe";
  if (isOwnStep(start)) return { mode, found: [], warnings: [] };
  const judged = wheres.flatMap((where) => {
    const files = start.files.map((file) => readingsOf(file, where));
    return policies.map((policy) => judgeStart(policy, start, files));
  });
  const silent = policies.find(({ document }) => document.approval?.interactive === false);
  const found = judged.flatMap((one) => one.found).map((one) => (silent === undefined ? one : unasked(one)));
  // The first place is the usual environment.
  const told = judged.slice(0, policies.length).flatMap((one) => one.warnings);
  return {
    mode,
    found: STRICTEST_FIRST.flatMap((verdict) => found.filter((one) => one.verdict === verdict)),
    warnings: told.filter(({ rule }, index) => told.findIndex((one) => isSame(one.rule, rule)) === index),
  };
}

function isSame(one: DecisionRule, other: DecisionRule): boolean {
  return one.source === other.source && one.pattern === other.pattern;
}

/** Turns ask into deny where nobody may be asked. */
function unasked(finding: StartFinding): StartFinding {
  if (finding.verdict !== "ask") return finding;
  const silent = "Nobody can be asked: approval.interactive is false";
  return refusing(finding, silent);
}

function refusing(finding: StartFinding, why: string): StartFinding {
  const { rule } = finding;
  const reason = rule.reason === undefined ? why : `${rule.reason} (${why})`;
  return { ...finding, verdict: "deny", rule: { ...rule, reason } };
}

interface Judged {
  readonly found: readonly StartFinding[];
  readonly warnings: readonly StartWarning[];
}

type Files = readonly (readonly StartReading[])[];

function judgeStart(policy: CompiledPolicy, start: ProgramStart, files: Files): Judged {
  const matched = files.flat().flatMap((reading) => matchesOf(policy, reading));
  const [asked = []] = files;
  return {
    found: [
      ...matched.flatMap((match) => finding(policy, match)).map(shownIn(start)),
      ...withoutFile(policy, start),
      ...notKnown(policy, start),
      ...perhaps(policy, start, files.flat()),
      ...notListed(policy, start, asked),
      ...notApproved(policy, start, asked),
    ],
    warnings: matched
      .filter(({ rule }) => rule.list === "commands.warn")
      .map(({ rule, command }) => ({ rule: named(rule, command.fragment), command })),
  };
}

interface Match {
  readonly rule: Rule;
  readonly command: SimpleCommand;
  readonly isInside: boolean;
}

function matchesOf(policy: CompiledPolicy, { commands, inside, where }: StartReading): Match[] {
  return commands.flatMap((command) =>
    rulesFor(policy, command, where)
      .filter(speaksOfStarts)
      .map((rule) => ({ rule, command, isInside: inside.includes(command) })),
  );
}

function finding(policy: CompiledPolicy, { rule, command, isInside }: Match): StartFinding[] {
  const verdict = VERDICTS[rule.list];
  if (verdict === undefined) return [];
  const said = named(rule, command.fragment);
  return [{ verdict, rule: said, policyId: policy.id, command: isInside ? null : command }];
}

/** Denies instead of asking when some words are cut: a person must see all words. */
function shownIn({ cut }: ProgramStart): (finding: StartFinding) => StartFinding {
  return (found) =>
    cut && found.verdict === "ask"
      ? refusing(found, "The program has more arguments than can be shown to the person who would approve it")
      : found;
}

/** Denies a file in memory or a removed file: no rule knows the file, and nobody can inspect the content later. */
function withoutFile(policy: CompiledPolicy, { files }: ProgramStart): StartFinding[] {
  const file = files.find(({ path }) => path === null);
  return file === undefined || mayRunFromMemory(policy)
    ? []
    : [denial(policy, "memory", "memory_programs: deny", wordsOf(file.argv), WITHOUT_FILE)];
}

const WITHOUT_FILE =
  "The program cannot be checked: it has no file, because it is only in memory or its file was removed";

function mayRunFromMemory({ document }: CompiledPolicy): boolean {
  return document.commands?.memory_programs === "allow";
}

/** Denies an unreadable start: any rule may concern the program. */
function notKnown(policy: CompiledPolicy, { unread, files: [file] }: ProgramStart): StartFinding[] {
  if (unread === null) return [];
  const fragment = wordsOf(file.argv);
  const reason = `The program that would run is unknown: ${unread}`;
  if (!mayRunFromMemory(policy)) return [denial(policy, "memory", "memory_programs: deny", fragment, reason)];
  return policy.rules.all.flatMap((rule) =>
    speaksOfStarts(rule) ? unsure(policy, rule, fragment, reason) : [],
  );
}

/** Rules about a program started with more words than are known here. */
function perhaps(
  policy: CompiledPolicy,
  { cut, files: [file] }: ProgramStart,
  readings: readonly StartReading[],
): StartFinding[] {
  const reason =
    "The program has more arguments than can be checked (256 KiB), and this rule may match them; 'xargs -n 1000' starts it with fewer";
  const whole = readings.some(({ hidden }) => hidden) ? policy.rules.all.filter(speaksOfStarts) : [];
  const about = cut ? readings.flatMap((reading) => rulesAbout(policy, reading)) : [];
  return [...new Set([...about, ...whole])].flatMap((rule) =>
    unsure(policy, rule, wordsOf(file.argv), reason),
  );
}

function rulesAbout({ rules }: CompiledPolicy, { commands, where }: StartReading): readonly Rule[] {
  return commands.flatMap((command) => {
    const prepared = prepare(command, where);
    if (prepared === null) return [];
    const own = prepared.names.flatMap((name) => rules.byProgram.get(name) ?? []);
    return [...rules.anyProgram, ...own].filter((rule) => speaksOfStarts(rule) && isAbout(rule, prepared));
  });
}

function isAbout({ stages: [stage] }: Rule, prepared: PreparedCommand): boolean {
  return stage !== undefined && programMatches(stage, prepared, "refusing");
}

/** A finding for a rule that may match; denies instead of asking, since a person cannot judge unknown words. */
function unsure(policy: CompiledPolicy, rule: Rule, fragment: string, reason: string): StartFinding[] {
  const verdict = VERDICTS[rule.list];
  if (verdict === undefined) return [];
  const said = { ...named(rule, fragment), reason };
  return [{ verdict: verdict === "ask" ? "deny" : verdict, rule: said, policyId: policy.id, command: null }];
}

/** Denies programs outside a non-empty `commands.allowed`; rules that ask or isolate count as listed. */
function notListed(
  policy: CompiledPolicy,
  start: ProgramStart,
  asked: readonly StartReading[],
): StartFinding[] {
  if (policy.rules.count["commands.allowed"] === 0) return [];
  const { cut, files } = start;
  const [file] = files;
  const isListed = (reading: StartReading): boolean =>
    [reading.commands[0], ...reading.inside].every((command) =>
      rulesFor(policy, command, reading.where).some(
        (rule) => LISTED.has(rule.list) && (!cut || saysAllWords(rule)),
      ),
    );
  const paths = asked.filter(({ isPath }) => isPath);
  // The caller's name chooses the program inside a multi-call file.
  const claims = isMany(file) && !paths.some((one) => isCalledSo(one, file.argv[0])) ? asked : [];
  if (paths.some(isListed) && claims.every(isListed)) return [];
  const reason = "no entry of commands.allowed matches this program";
  return [denial(policy, "allowed", policy.rules.allowedInWords, wordsOf(file.argv), reason)];
}

/** `git *`: any further words, unless the program has options that load code. */
function saysAllWords({ stages: [stage] }: Rule): boolean {
  return stage?.rest === true && stage.facts.loadsCode === undefined;
}

function isCalledSo({ commands: [{ words }] }: StartReading, name: string | undefined): boolean {
  return baseName(words[0]?.text ?? "") === baseName(name ?? "");
}

function denial(
  policy: CompiledPolicy,
  key: "allowed" | "memory",
  pattern: string,
  fragment: string,
  reason: string,
): StartFinding {
  const rule = keyRule(policy, key, pattern, fragment, reason);
  return { verdict: "deny", rule, policyId: policy.id, command: null };
}

/**
 * Starts by which a program does part of its own work in another process: `git stash` runs `git reset --hard`, with words that no
 * caller chooses. The program's own start was judged, and a rule about such words means a person or an agent typing the words.
 * Each row is word for word, because the same program also starts commands of its caller (`git submodule foreach`, an alias, an
 * editor). Data, and pure.
 */

interface OwnSteps {
  /** The words behind the program's name and its harmless options. */
  readonly of: readonly string[];
  /** Argument lists of the started steps. */
  readonly steps: readonly string[];
}

const GIT: readonly OwnSteps[] = [
  // builtin/stash.c, do_push_stash: after all changes were saved.
  {
    of: ["stash"],
    steps: [
      "reset --hard -q --no-recurse-submodules",
      "clean --force --quiet -d :/",
      "clean --force --quiet -d -x :/",
      "clean --force --quiet -d :/ -x",
    ],
  },
  // builtin/worktree.c, add_worktree: fills the new folder.
  {
    of: ["worktree", "add"],
    steps: ["reset --hard --no-recurse-submodules", "reset --hard --no-recurse-submodules --quiet"],
  },
];

/** Harmless options, with the number of words. Other options may change the meaning of the words behind, so no step matches. */
const OPTIONS: ReadonlyMap<string, number> = new Map([
  ...["-C", "-c"].map((option) => [option, 2] as const),
  ...["-p", "-P", "--paginate", "--no-pager", "--no-optional-locks"].map((option) => [option, 1] as const),
]);

/** Whether an installed git starts itself as a step of its own command. */
function isOwnStep({ starter, files, cut, unread }: ProgramStart): boolean {
  const [{ path, argv }, ...others] = files;
  if (starter === undefined || others.length > 0 || cut || unread !== null) return false;
  if (path === null || !isGit(path) || !isGit(starter.path)) return false;
  const command = withoutOptions(starter.argv.slice(1));
  const step = argv.slice(1).join(" ");
  return GIT.some(({ of, steps }) => of.every((word, at) => command[at] === word) && steps.includes(step));
}

function isGit(path: string): boolean {
  return isSystemFile(path) && baseName(path) === "git";
}

function withoutOptions(words: readonly string[]): readonly string[] {
  const taken = OPTIONS.get(words[0] ?? "");
  return taken === undefined ? words : withoutOptions(words.slice(taken));
}

/**
 * `approval.require` at a start: asks about programs outside `approval.auto_approve`. The exec gate lifts the question for
 * programs covered by the command line.
 */
function notApproved(
  policy: CompiledPolicy,
  { cut, files: [file] }: ProgramStart,
  asked: readonly StartReading[],
): StartFinding[] {
  if (!asksForAll(policy)) return [];
  const isApproved = ({ commands: [command], where }: StartReading): boolean =>
    rulesFor(policy, command, where).some(({ list }) => list === "approval.auto_approve");
  if (!cut && asked.some((reading) => reading.isPath && isApproved(reading))) return [];
  const fragment = wordsOf(file.argv);
  const rule = keyRule(policy, "require", "require: true", fragment, NOT_NAMED);
  return [{ verdict: cut ? "deny" : "ask", rule, policyId: policy.id, command: null }];
}

const NOT_NAMED =
  "approval.require is true, and neither approval.auto_approve nor the command line names this program";

/** Returns the matching rules, sorted by `order`. */
function rulesFor(policy: CompiledPolicy, command: SimpleCommand, where: Where): readonly Rule[] {
  const prepared = prepare(command, where);
  return prepared === null
    ? []
    : matchingRules(policy.rules, prepared, asksForAll(policy)).sort((one, other) => one.order - other.order);
}

/** Joins the words as a fragment does. */
function wordsOf(argv: readonly string[]): string {
  return argv.join(" ");
}
