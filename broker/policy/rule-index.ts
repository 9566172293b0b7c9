/** Groups compiled rules by their program, so that a command meets only those that could concern it. */
import type { Rule, RuleList, RuleSet } from "./rule-set.ts";

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
