/** Groups compiled rules so that a command meets only those that could concern it. */
import { looksLikePath, normalPath } from "./paths.ts";
import type { StagePattern } from "./pattern.ts";
import { type PreparedCommand, spellingsOf } from "./prepare.ts";
import type { Rule, RuleList, RuleSet } from "./rule-set.ts";

/** The rules about one program. */
export interface ProgramRules {
  readonly all: readonly Rule[];
  /** Those that say nothing that a command must have word for word. */
  readonly always: readonly Rule[];
  /** The others, by one such word: an operand or the name of an option. */
  readonly byWord: ReadonlyMap<string, readonly Rule[]>;
}

export function indexRules(
  rules: readonly Rule[],
): Pick<RuleSet, "byProgram" | "anyProgram" | "pipes" | "count"> {
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
  const programs = [...byProgram].map(([name, own]) => [name, programRules(own)] as const);
  return { byProgram: new Map(programs), anyProgram, pipes, count };
}

function programRules(all: readonly Rule[]): ProgramRules {
  const always: Rule[] = [];
  const byWord = new Map<string, Rule[]>();
  for (const rule of all) {
    const [stage] = rule.stages;
    const words = stage === undefined ? [] : neededWords(stage);
    if (words.length === 0) always.push(rule);
    for (const word of words) append(byWord, word, rule);
  }
  return { all, always, byWord };
}

/**
 * Spellings of which every command that the pattern matches has one. The last operand tells most: `git push one` and
 * `git push two` differ in it. Relative paths and folders by name have spellings that depend on where the command stands.
 */
function neededWords({ own }: StagePattern): readonly string[] {
  for (const { word } of [...own.operands].reverse()) {
    if (word.kind !== "literal" || word.text.includes("\0")) continue;
    if (!looksLikePath(word.text)) return [word.text];
    if (word.text.startsWith("/")) return [...new Set([word.text, normalPath(word.text, null)])];
  }
  return [...own.options.keys()].slice(0, 1);
}

/** The rules about the program of this name that could match the command; perhaps one of them twice. */
export function* candidates(rules: ProgramRules, command: PreparedCommand): Generator<Rule> {
  // Whoever is known by another program's name has its words sorted by its own habits: no word can be relied on.
  const same = rules.all[0]?.stages[0]?.facts === command.facts;
  if (!same) return yield* rules.all;
  yield* rules.always;
  if (rules.byWord.size === 0) return;
  for (const word of writtenWords(command)) yield* rules.byWord.get(word) ?? [];
}

function writtenWords(command: PreparedCommand): ReadonlySet<string> {
  const words = new Set(command.args.options.keys());
  for (const { word } of command.args.operands) {
    for (const spelling of spellingsOf(word, command).any) words.add(spelling);
  }
  return words;
}

function append(lists: Map<string, Rule[]>, name: string, rule: Rule): void {
  const list = lists.get(name);
  if (list === undefined) lists.set(name, [rule]);
  else list.push(rule);
}
