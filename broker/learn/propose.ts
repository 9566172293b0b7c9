/** The spine: from what was observed to a patch that was tried. Pure; files and clocks are the caller's. */
import type { DecisionRule, PolicyDocument } from "../../schemas/generated/types.ts";
import type { PolicyCase } from "../policy-cases/parse-case.ts";
import type { CompiledPolicy, Where } from "../policy/index.ts";
import { type Addition, compiled, withAdditions } from "./additions.ts";
import { checkProposal, type Checked, rulesOf } from "./check-proposal.ts";
import { judgeCommands, type JudgedCommand, type Need } from "./command-fates.ts";
import { judgeConnections, type StoppedConnection } from "./connection-fates.ts";
import { exactGroups, type Grouped, starredGroups } from "./generalise.ts";
import { widenings } from "./neighbours.ts";
import type { Observed } from "./observations.ts";
import { listsWhenAbsent, placeAdditions, withInsertions } from "./place-additions.ts";
import { type Seen, seenAlso, seenWords } from "./seen.ts";
import { unifiedDiff } from "./unified-diff.ts";
import { type JudgedWrites, judgeWrites, type PathKind, type StoppedWrite } from "./write-fates.ts";

export type LearnFrom = {
  readonly policy: CompiledPolicy;
  /** The policy's file as it is now. */
  readonly text: string;
  /** Its path, as the diff names it. */
  readonly file: string;
  readonly observed: Observed;
  /** Its own cases: none may get another verdict. */
  readonly cases: readonly PolicyCase[];
  readonly whereOf: (cwd: string) => Where;
  readonly kindOf: (path: string) => PathKind;
  /** One `*` for several values that were seen in one place. */
  readonly generalise: boolean;
};

export type Proposal = {
  readonly additions: readonly Addition[];
  /** Empty when there is nothing to propose. */
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

/** What would let pass more than was seen is not proposed, nor any other part of a command that needs it. */
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

/** A group that lets pass more than its one free word is taken apart again. */
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
  const why = `a rule for '${need.pattern}' would let '${words}' pass as well, which nobody ran`;
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

/** What was seen of a pattern is what was seen of every command that needs it. */
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

/** Rules were matched in a policy that was made for it: they get the lines that they have in the file. */
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

/** Where a rule stands: an item of its list, or a key that decides without a pattern. */
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
