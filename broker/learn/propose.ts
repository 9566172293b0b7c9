/** Entry point: from observations to a tested patch. Pure; the caller handles files and clocks. */
import type { DecisionRule, PolicyDocument } from "../../schemas/generated/types.ts";
import type { PolicyCase } from "../policy-cases/parse-case.ts";
import {
  type CompiledPolicy,
  decide,
  type Decision,
  parsePolicy,
  type PlainVerdict,
  readArgv,
  type Where,
} from "../policy/index.ts";
import { type Addition, compiled, withAdditions } from "./additions.ts";
import { judgeCommands, type JudgedCommand, type Need } from "./command-fates.ts";
import { isAllowed, judgeConnections, type StoppedConnection } from "./connection-fates.ts";
import { exactGroups, type Grouped, starredGroups } from "./generalise.ts";
import type { Observed, ObservedConnection } from "./observations.ts";
import { listsWhenAbsent, placeAdditions, withInsertions } from "./place-additions.ts";
import { type Seen, seenAlso, seenWords } from "./observations.ts";
import { unifiedDiff } from "./unified-diff.ts";
import { type JudgedWrites, judgeWrites, type PathKind, type StoppedWrite } from "./write-fates.ts";
import { isDeepStrictEqual } from "node:util";
import { decideCase, plainVerdict } from "../policy-cases/judge-case.ts";
import { type NetRules, netRules } from "../network/rules.ts";

export type LearnFrom = {
  readonly policy: CompiledPolicy;
  /** The current text of the policy's file. */
  readonly text: string;
  /** The file's path, as shown in the diff. */
  readonly file: string;
  readonly observed: Observed;
  /** The policy's own cases: every verdict must stay. */
  readonly cases: readonly PolicyCase[];
  readonly whereOf: (cwd: string) => Where;
  readonly kindOf: (path: string) => PathKind;
  /** A `*` may replace several values observed at the same position. */
  readonly generalise: boolean;
};

export type Proposal = {
  readonly additions: readonly Addition[];
  /** Empty without additions. */
  readonly patch: string;
  readonly text: string;
  readonly commands: readonly JudgedCommand[];
  readonly writes: { readonly stopped: readonly StoppedWrite[]; readonly allowed: number };
  readonly connections: { readonly stopped: readonly StoppedConnection[]; readonly allowed: number };
  readonly checked: Checked;
};

export function propose(from: LearnFrom): Proposal | { readonly wrong: string } {
  const { document } = from.policy;
  const writes = judgeWrites(document, from.observed.writes, from.whereOf, from.kindOf);
  const { commands: judged, groups, neighbours } = learnCommands(from, writes);
  const commands = withSources(judged, from.policy);
  const connections = judgeConnections(rulesOf(from.policy), from.observed.connections);
  const additions = [
    ...writes.additions,
    ...groups.map((group) => additionOf(group, commands)),
    ...connections.additions,
  ];
  const text = withNewItems(from.text, from.policy, additions);
  const wanted = withAdditions(document, additions);
  const checked = checkProposal({
    before: from.policy,
    text,
    wanted,
    commands,
    connections: connections.learned,
    cases: from.cases,
  });
  if ("wrong" in checked) return checked;
  return {
    additions,
    patch: unifiedDiff(from.text, text, from.file),
    text,
    commands,
    writes,
    connections,
    checked: { ...checked, neighbours },
  };
}

type Learned = {
  readonly commands: readonly JudgedCommand[];
  readonly groups: readonly Grouped[];
  readonly neighbours: number;
};

/**
 * Learns commands. A pattern that would allow more than the observed commands is not proposed, nor are other parts of a command
 * that needs the pattern.
 */
function learnCommands({ policy, observed, whereOf, generalise }: LearnFrom, writes: JudgedWrites): Learned {
  const { document, source } = policy;
  const scopes = writes.additions.map(({ value }) => value);
  const judged = judgeCommands(document, source, scopes, observed.commands, whereOf);
  const exact = exactGroups(needsOf(judged));
  const after = compiled(withAdditions(document, [...writes.additions, ...asAdditions(exact)]), source);
  const { found } = widenings(policy, after, needsOf(judged), () => undefined);
  const wide = new Map(found.map(({ need, words }) => [keyOf(need), words]));
  const commands = judged.map((one) => withoutWidening(one, wide));
  const needs = needsOf(commands);
  const groups = generalise ? starredGroups(needs) : exactGroups(needs);
  return tried(policy, writes, commands, groups);
}

/** Splits a group again if its pattern allows more than its free word. */
function tried(
  policy: CompiledPolicy,
  writes: JudgedWrites,
  commands: readonly JudgedCommand[],
  groups: readonly Grouped[],
): Learned {
  const after = compiled(
    withAdditions(policy.document, [...writes.additions, ...asAdditions(groups)]),
    policy.source,
  );
  const free = new Map(groups.flatMap((group) => group.needs.map((need) => [need, group.free] as const)));
  const { tried: neighbours, found } = widenings(policy, after, [...free.keys()], (need) => free.get(need));
  if (found.length === 0) return { commands, groups, neighbours };
  const wide = new Set(found.map(({ need }) => need));
  const narrower = groups.flatMap((group) =>
    group.free !== undefined && group.needs.some((need) => wide.has(need))
      ? exactGroups(group.needs)
      : [group],
  );
  return { commands, groups: narrower, neighbours };
}

function withoutWidening(one: JudgedCommand, wide: ReadonlyMap<string, readonly string[]>): JudgedCommand {
  if (one.fate.kind !== "learned") return one;
  const need = one.fate.needs.find((each) => wide.has(keyOf(each)));
  if (need === undefined) return one;
  const words = (wide.get(keyOf(need)) ?? []).join(" ");
  const why = `a rule for '${need.pattern}' would also allow '${words}', which never ran`;
  return { ...one, fate: { kind: "unsayable", rule: null, why } };
}

function needsOf(commands: readonly JudgedCommand[]): readonly Need[] {
  return commands.flatMap(({ fate }) => (fate.kind === "learned" ? fate.needs : []));
}

function keyOf({ list, pattern }: Need): string {
  return `${list} ${pattern}`;
}

function asAdditions(groups: readonly Grouped[]): readonly { list: Need["list"]; value: string }[] {
  return groups.map(({ list, pattern }) => ({ list, value: pattern }));
}

/** Sums the observations of every command that needs the pattern. */
function additionOf({ list, pattern, needs }: Grouped, commands: readonly JudgedCommand[]): Addition {
  const keys = new Set(needs.map(keyOf));
  const seen = commands
    .filter(({ fate }) => fate.kind === "learned" && fate.needs.some((need) => keys.has(keyOf(need))))
    .map(({ observed }) => observed.seen)
    .reduce<Seen | undefined>(seenAlso, undefined);
  return { list, value: pattern, seen: seen ?? { count: 0, last: "", spans: [] } };
}

function withNewItems(text: string, policy: CompiledPolicy, additions: readonly Addition[]): string {
  const items = additions.map(({ list, value, seen }) => ({ list, value, note: seenWords(seen) }));
  return withInsertions(text, placeAdditions(text, items, listsWhenAbsent(policy)));
}

/** Rewrites rules' sources to lines in the file: the commands were matched against a generated policy. */
function withSources(
  commands: readonly JudgedCommand[],
  { document, at }: CompiledPolicy,
): readonly JudgedCommand[] {
  const placed = (rule: DecisionRule): DecisionRule => {
    const { file, line } = at(ruleInDocument(document, rule));
    return { ...rule, source: `${file}:${line}` };
  };
  return commands.map((one) =>
    "rule" in one.fate && one.fate.rule !== null
      ? { ...one, fate: { ...one.fate, rule: placed(one.fate.rule) } }
      : one,
  );
}

/** Returns the position of a rule: an item of its list, or a key that decides without a pattern. */
function ruleInDocument(
  document: PolicyDocument,
  { list, pattern }: DecisionRule,
): readonly (string | number)[] {
  const path = list.split(".");
  const items = path.reduce<unknown>(
    (value, key) =>
      typeof value === "object" && value !== null ? (value as Record<string, unknown>)[key] : undefined,
    document,
  );
  if (!Array.isArray(items)) return path;
  const index = items.findIndex((item: unknown) =>
    typeof item === "object" && item !== null && "pattern" in item
      ? item.pattern === pattern
      : item === pattern,
  );
  return index === -1 ? path : [...path, index];
}

/** Results of the checks before a proposal is shown. */
type Checked = {
  /** Numbers of observed commands that the proposal allows, and of commands with an unchanged verdict. */
  readonly learned: number;
  readonly unchanged: number;
  /** Number of observed connections that the proposal allows. */
  readonly connections: number;
  /** Number of the policy's cases with an unchanged verdict and rule. */
  readonly cases: number;
  /** Number of tried commands that differ from an observed command in a single word; the verdict of none is milder. */
  readonly neighbours: number;
};

type Checkable = {
  readonly before: CompiledPolicy;
  /** The file after the proposal. */
  readonly text: string;
  /** The exact document that the file must contain. */
  readonly wanted: PolicyDocument;
  readonly commands: readonly JudgedCommand[];
  /** Each must be allowed. */
  readonly connections: readonly ObservedConnection[];
  readonly cases: readonly PolicyCase[];
};

/** Returns the network rules of the policy's own entries; presets stay empty, because the host defines their meaning. */
function rulesOf({ net }: CompiledPolicy): NetRules {
  return netRules([{ net, presets: new Map() }]);
}

/** Tests that the proposal has exactly the wanted effects; returns a sentence if not. Pure. */
function checkProposal({
  before,
  text,
  wanted,
  commands,
  connections,
  cases,
}: Checkable): Omit<Checked, "neighbours"> | { readonly wrong: string } {
  const loaded = parsePolicy(text, before.source, undefined, () => before.base ?? []);
  if ("problems" in loaded) return { wrong: `the patched file does not load: ${loaded.problems[0]?.text}` };
  const after = loaded.ok;
  if (!isDeepStrictEqual(after.document, wanted))
    return { wrong: "cannot place the lines: the layout of the file is not understood" };
  const stopped = commands.find(({ fate, read, where }) => {
    const verdict = plainVerdict(decide(after, read, where).verdict);
    return fate.kind === "learned" && verdict !== "allow" && verdict !== "isolate";
  });
  if (stopped !== undefined) return { wrong: `it would not allow '${stopped.observed.text}'` };
  const refused = connections.find((one) => !isAllowed(rulesOf(after), one));
  if (refused !== undefined) return { wrong: `it would not allow '${refused.host}:${refused.port}'` };
  const others = commands.filter(({ fate }) => fate.kind !== "learned");
  const changed = others.find(
    ({ read, where }) => !sameAnswer(decide(before, read, where), decide(after, read, where)),
  );
  if (changed !== undefined) return { wrong: `it would change the verdict on '${changed.observed.text}'` };
  const broken = cases.find((one) => !sameAnswer(decideCase(before, one), decideCase(after, one)));
  if (broken !== undefined) return { wrong: `it would change the verdict of the case '${broken.place}'` };
  return {
    learned: commands.length - others.length,
    unchanged: others.length,
    connections: connections.length,
    cases: cases.length,
  };
}

/** Lists named in replies by their items: an addition changes the words of a reply, not the verdict. */
const TOLD_BY_ITEMS: ReadonlySet<string> = new Set(["commands.allowed", "fs.write"]);

/** Sources are not compared: lines of the file move. */
function sameAnswer(one: Decision, other: Decision): boolean {
  const list = one.rule?.list;
  return (
    one.verdict === other.verdict &&
    list === other.rule?.list &&
    ((list !== undefined && TOLD_BY_ITEMS.has(list)) || one.rule?.pattern === other.rule?.pattern)
  );
}

const STRICTNESS: Readonly<Record<PlainVerdict, number>> = { allow: 0, isolate: 1, ask: 2, deny: 3 };

/** A neighbour of an observed command that nobody ran, but the proposal would allow. */
type Widening = { readonly need: Need; readonly words: readonly string[] };

/**
 * Finds unobserved commands that differ from an observed command in a single word and get a milder verdict after the proposal.
 * `free` is the index of a need's `*` word, which may differ. `tried` counts all neighbours. Pure.
 */
function widenings(
  before: CompiledPolicy,
  after: CompiledPolicy,
  needs: readonly Need[],
  free: (need: Need) => number | undefined,
): { readonly tried: number; readonly found: readonly Widening[] } {
  const observed = new Set(needs.map(({ words }) => JSON.stringify(words)));
  const all = needs.flatMap((need) =>
    neighboursOf(need.words, free(need))
      .filter((words) => !observed.has(JSON.stringify(words)))
      .map((words): Widening => ({ need, words })),
  );
  const found = all.filter(
    ({ need, words }) => strictness(after, words, need) < strictness(before, words, need),
  );
  return { tried: all.length, found };
}

function strictness(policy: CompiledPolicy, words: readonly string[], { where }: Need): number {
  return STRICTNESS[plainVerdict(decide(policy, readArgv(words), where).verdict) as PlainVerdict];
}

/** Returns neighbours: a single word more, less, or changed; the same name in another folder. */
function neighboursOf(words: readonly string[], free: number | undefined): readonly (readonly string[])[] {
  const [program = "", ...rest] = words;
  const fixed = rest.map((_word, index) => index + 1).filter((index) => index !== free);
  return [
    [...words, "unseen-word"],
    [...words, "--unseen-option"],
    [`${program}-unseen`, ...rest],
    // A program named by its folder stays the same behind another './'.
    ...(program.includes("/") ? [] : [[`./${program}`, ...rest]]),
    ...fixed.map((index) => words.with(index, `${words[index] ?? ""}-unseen`)),
    ...fixed.map((index) => words.toSpliced(index, 1)),
  ];
}
