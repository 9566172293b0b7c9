/** Groups compiled rules so that a command meets only those that could concern it. */
import { END_LENGTH } from "./pattern.ts";
import { type PreparedCommand, spellingsOf } from "./prepare.ts";
import type { Rule, RuleList, RuleSet } from "./rule-set.ts";

/** The rules about one program. */
export class ProgramRules {
  readonly all: Rule[];
  #sorted: SortedRules | undefined;

  constructor(first: Rule, rest: readonly Rule[] = []) {
    this.all = [first, ...rest];
  }

  /** Made when the first command asks for it: an edit of a policy makes none. */
  sorted(): SortedRules {
    return (this.#sorted ??= sortRules(this.all));
  }
}

interface SortedRules {
  /** Those that say nothing that a command must have word for word. */
  readonly always: RulesByEnd;
  /** The others, by one such word: an operand or the name of an option. */
  readonly byWord: ReadonlyMap<string, RulesByEnd>;
  /** Whether any of them says how a word must end. */
  readonly ended: boolean;
}

/** By what some word of a command must end with; the empty text holds those that say nothing of it. */
type RulesByEnd = Map<string, Rule[]>;

type Index = Pick<RuleSet, "all" | "byProgram" | "anyProgram" | "pipes" | "count">;

export function indexRules(rules: readonly Rule[]): Index {
  const byProgram = new Map<string, ProgramRules>();
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
    else {
      const own = byProgram.get(name);
      if (own === undefined) byProgram.set(name, new ProgramRules(rule));
      else own.all.push(rule);
    }
  }
  return { all: rules, byProgram, anyProgram, pipes, count };
}

function sortRules(all: readonly Rule[]): SortedRules {
  const always: RulesByEnd = new Map();
  const byWord = new Map<string, RulesByEnd>();
  for (const rule of all) {
    const [stage] = rule.stages;
    const [words, end] = [stage?.needed ?? [], stage?.neededEnd ?? ""];
    if (words.length === 0) append(always, end, rule);
    for (const word of words) {
      const own = byWord.get(word) ?? new Map<string, Rule[]>();
      byWord.set(word, own);
      append(own, end, rule);
    }
  }
  return {
    always,
    byWord,
    ended: all.some(({ stages: [stage] }) => stage !== undefined && stage.neededEnd !== null),
  };
}

/** The rules about the program of this name that could match the command; perhaps one of them twice. */
export function* candidates(rules: ProgramRules, command: PreparedCommand): Generator<Rule> {
  // Whoever is known by another program's name has its words sorted by its own habits: no word can be relied on.
  const same = rules.all[0]?.stages[0]?.facts === command.facts;
  if (!same) return yield* rules.all;
  const { always, byWord, ended } = rules.sorted();
  if (byWord.size === 0 && !ended) return yield* always.get("") ?? [];
  const words = writtenWords(command);
  const ends = ended ? endsOf(words) : [""];
  for (const end of ends) yield* always.get(end) ?? [];
  for (const word of words) {
    const own = byWord.get(word);
    if (own !== undefined) for (const end of ends) yield* own.get(end) ?? [];
  }
}

/** What any of them ends with, up to so many characters: nothing, too. */
function endsOf(words: Iterable<string>): ReadonlySet<string> {
  const ends = new Set([""]);
  for (const word of words) {
    for (let length = Math.min(END_LENGTH, word.length); length > 0; length -= 1)
      ends.add(word.slice(-length));
  }
  return ends;
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
