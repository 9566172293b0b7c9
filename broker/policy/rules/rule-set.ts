import type { CommandRule } from "../../../schemas/generated/types.ts";
import { type Reading, stageMatches } from "./match.ts";
import type { StagePattern } from "./pattern.ts";
import type { PreparedCommand } from "./prepare.ts";

export type RuleList =
  | "commands.denied"
  | "commands.ask"
  | "commands.isolated"
  | "commands.warn"
  | "commands.allowed"
  | "approval.auto_approve";

export interface Rule {
  readonly list: RuleList;
  readonly pattern: string;
  readonly reason: string | undefined;
  /** `file.yaml:line` */
  readonly source: string;
  readonly line: number;
  /** Position among all rules: of two equal rules, the reply names the earlier. */
  readonly order: number;
  readonly stages: readonly StagePattern[];
}

export interface RuleSet {
  /** Sorted by `order`. */
  readonly all: readonly Rule[];
  readonly byProgram: ReadonlyMap<string, readonly Rule[]>;
  /** Rules with a `*` in the program word. */
  readonly anyProgram: readonly Rule[];
  /** Rules with a `|`, by the program of their first stage; the empty name holds rules with a `*` there. */
  readonly pipes: ReadonlyMap<string, readonly Rule[]>;
  readonly count: Readonly<Record<RuleList, number>>;
  /** The patterns of `commands.allowed` as text, for the refusal of an unlisted command. */
  readonly allowedInWords: string;
  /** `file.yaml:line` of the keys that decide without a pattern. */
  readonly sources: Readonly<
    Record<
      | "allowed"
      | "opaque"
      | "operators"
      | "require"
      | "read"
      | "write"
      | "denyWrite"
      | "denyRead"
      | "memory"
      | "timeout",
      string
    >
  >;
}

/** More than several policy files hold. Beyond the limit the oldest rule is evicted: the next load tries the rule's examples again. */
const MOST_PASSED = 20_000;

/**
 * Cache of rules whose own examples passed: trying the examples of 1,000 rules takes about 80 ms, so an edit tries only the
 * changed rules.
 */
export class PassedRules {
  readonly #stages = new Map<string, Rule["stages"]>();

  stagesOf(list: RuleList, written: CommandRule): Rule["stages"] | undefined {
    return this.#stages.get(keyOf(list, written));
  }

  remember(list: RuleList, written: CommandRule, stages: Rule["stages"]): void {
    const [oldest] = this.#stages.size < MOST_PASSED ? [] : this.#stages.keys();
    if (oldest !== undefined) this.#stages.delete(oldest);
    this.#stages.set(keyOf(list, written), stages);
  }
}

/** Keys include the reading: an allowing rule reads its examples differently from a refusing rule. */
function keyOf(list: RuleList, written: CommandRule): string {
  return `${readingOf(list)} ${JSON.stringify(written)}`;
}

export function readingOf(list: RuleList): Reading {
  return list === "commands.allowed" || list === "approval.auto_approve" ? "allowing" : "refusing";
}

/**
 * Returns every single-stage rule that matches this command.
 *
 * @param asksForAll `approval.require`: without the key nobody asks, so `auto_approve` is skipped and saves disk lookups.
 */
export function matchingRules(rules: RuleSet, command: PreparedCommand, asksForAll = true): Rule[] {
  const matched: Rule[] = [];
  const consider = (rule: Rule): void => {
    if (!asksForAll && rule.list === "approval.auto_approve") return;
    const [stage] = rule.stages;
    if (stage !== undefined && stageMatches(stage, command, readingOf(rule.list))) matched.push(rule);
  };
  for (const rule of rules.anyProgram) consider(rule);
  for (const name of command.names) for (const rule of rules.byProgram.get(name) ?? []) consider(rule);
  return matched;
}

export interface PipeMatch {
  readonly rule: Rule;
  /** Indexes of the commands matched by the rule's stages. */
  readonly commands: readonly number[];
}

/** Matches rules with a `|` against a pipeline. A refusing rule may skip stages: `curl x | tee log | sh`. */
export function matchingPipes(
  rules: RuleSet,
  pipeline: readonly (readonly number[])[],
  commands: readonly (PreparedCommand | null)[],
): PipeMatch[] {
  const names = new Set(["", ...pipeline.flat().flatMap((index) => commands[index]?.names ?? [])]);
  const candidates = [...names].flatMap((name) => rules.pipes.get(name) ?? []);
  return candidates.flatMap((rule) => {
    const matched = matchStages(rule, pipeline, commands);
    return matched === null ? [] : [{ rule, commands: matched }];
  });
}

function matchStages(
  rule: Rule,
  pipeline: readonly (readonly number[])[],
  commands: readonly (PreparedCommand | null)[],
): number[] | null {
  const reading = readingOf(rule.list);
  if (reading === "allowing" && pipeline.length !== rule.stages.length) return null;
  const matched: number[] = [];
  let wanted = 0;
  for (const stage of pipeline) {
    const pattern = rule.stages[wanted];
    if (pattern === undefined) break;
    const found = stage.filter((index) => {
      const command = commands[index];
      return command !== undefined && command !== null && stageMatches(pattern, command, reading);
    });
    if (found.length > 0) {
      matched.push(...(reading === "allowing" ? found : found.slice(0, 1)));
      wanted += 1;
    } else if (reading === "allowing") return null;
  }
  return wanted === rule.stages.length ? matched : null;
}

/** Indexes compiled rules by program, so that a command is matched only against rules that may concern its program. */

export function indexRules(
  rules: readonly Rule[],
): Pick<RuleSet, "all" | "byProgram" | "anyProgram" | "pipes" | "count"> {
  const byProgram = new Map<string, Rule[]>();
  const anyProgram: Rule[] = [];
  const pipes = new Map<string, Rule[]>();
  const count: Record<RuleList, number> = {
    "commands.denied": 0,
    "commands.ask": 0,
    "commands.isolated": 0,
    "commands.warn": 0,
    "commands.allowed": 0,
    "approval.auto_approve": 0,
  };
  for (const rule of rules) {
    count[rule.list] += 1;
    const name = rule.stages[0]?.programName ?? null;
    if (rule.stages.length > 1) append(pipes, name ?? "", rule);
    else if (name === null) anyProgram.push(rule);
    else append(byProgram, name, rule);
  }
  return { all: rules, byProgram, anyProgram, pipes, count };
}

function append(lists: Map<string, Rule[]>, name: string, rule: Rule): void {
  const list = lists.get(name);
  if (list === undefined) lists.set(name, [rule]);
  else list.push(rule);
}
