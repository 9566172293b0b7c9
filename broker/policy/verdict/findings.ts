import {
  type CommandRedirect,
  MAX_FRAGMENT_LENGTH,
  type ReadCommand,
  type SimpleCommand,
} from "../words/command.ts";
import type { CompiledPolicy, DecisionRule, PlainVerdict, Where } from "../rules/decision.ts";
import { PASSED_BY_DEFAULT } from "../rules/passed-variables.ts";
import { prepare, type PreparedCommand } from "../rules/prepare.ts";
import { wrongWrite } from "./writes.ts";
import { setsForOthers } from "../rules/set-variables.ts";
import { matchingPipes, matchingRules, readingOf, type Rule, type RuleList } from "../rules/rule-set.ts";
import { baseName } from "../words/inner.ts";
import { languageOf } from "../wrappers/shell-table.ts";

export interface Finding {
  readonly verdict: Exclude<PlainVerdict, "allow">;
  readonly rule: DecisionRule;
  /** Does not count for an isolated command, whose writes are held. */
  readonly unlessIsolated?: true;
}

export interface Findings {
  /** In the order that decides between equal verdicts: matching rules first, then keys without a pattern. */
  readonly found: readonly Finding[];
  readonly warnings: readonly DecisionRule[];
  /** The first matching rule of `commands.allowed`, named in the reply when no stricter rule matched. */
  readonly allowedBy: DecisionRule | null;
}

export const VERDICTS: Readonly<Partial<Record<RuleList, Finding["verdict"]>>> = {
  "commands.denied": "deny",
  "commands.ask": "ask",
  "commands.isolated": "isolate",
};

/** Matching rules for each command of the line; `rules[i]` belongs to `read.fragments[i]`. */
interface Matched {
  readonly commands: readonly SimpleCommand[];
  readonly rules: readonly Set<Rule>[];
  /** Matched rules with a `|`, with the text of the pipeline's matching commands, as `curl x | bash`. */
  readonly pipes: readonly { readonly rule: Rule; readonly fragment: string }[];
}

/** Collects everything against running a command plainly. */
export function findings(policy: CompiledPolicy, read: ReadCommand, where: Where): Findings {
  const matched = matchAll(policy, read, where);
  return {
    found: [
      ...byPattern(matched),
      ...byWrite(policy, read, where),
      ...byOperator(policy, read),
      ...byAllowedList(policy, matched),
      ...byOpacity(policy, read),
      ...byApproval(policy, matched, read),
    ],
    warnings: rulesOf(matched, "commands.warn"),
    allowedBy: rulesOf(matched, "commands.allowed")[0] ?? null,
  };
}

function matchAll(policy: CompiledPolicy, read: ReadCommand, where: Where): Matched {
  const tampered =
    allowsAnything(policy) && setsForOthers(read, policy.document.world?.env ?? PASSED_BY_DEFAULT, where);
  const prepared: (PreparedCommand | null)[] = read.fragments.map((command) =>
    prepare(command, where, tampered),
  );
  const rules = prepared.map(
    (command) => new Set(command === null ? [] : matchingRules(policy.rules, command, asksForAll(policy))),
  );
  tellOnce(read.fragments, rules);
  const matches =
    policy.rules.pipes.size === 0
      ? []
      : read.pipelines.flatMap((one) => matchingPipes(policy.rules, one, prepared));
  for (const { rule, commands } of matches) {
    if (readingOf(rule.list) === "allowing") for (const index of commands) rules[index]?.add(rule);
  }
  const pipes = matches.map(({ rule, commands }) => {
    return {
      rule,
      fragment: commands
        .map((index) => read.fragments[index]?.fragment)
        .join(" | ")
        .slice(0, MAX_FRAGMENT_LENGTH),
    };
  });
  return { commands: read.fragments, rules, pipes };
}

export function asksForAll({ document }: CompiledPolicy): boolean {
  return document.approval?.require === true;
}

/** Whether the policy has allowing rules: other rules ignore assigned variables. */
function allowsAnything(policy: CompiledPolicy): boolean {
  const { count } = policy.rules;
  return count["commands.allowed"] > 0 || (count["approval.auto_approve"] > 0 && asksForAll(policy));
}

/** Removes repeated matches of a command's second reading. */
function tellOnce(commands: readonly SimpleCommand[], rules: readonly Set<Rule>[]): void {
  const isSecond = (index: number): boolean => commands[index]?.reduced === true;
  const told = new Set(rules.flatMap((matched, index) => (isSecond(index) ? [] : [...matched])));
  for (const [index, matched] of rules.entries()) {
    if (!isSecond(index)) continue;
    for (const rule of matched) {
      if (told.has(rule)) matched.delete(rule);
      told.add(rule);
    }
  }
}

function byPattern(matched: Matched): Finding[] {
  return everyMatch(matched).flatMap(({ rule, fragment }) => {
    const verdict = VERDICTS[rule.list];
    return verdict === undefined ? [] : [{ verdict, rule: named(rule, fragment) }];
  });
}

/** Returns every match, in the order of commands, then of rules; pipelines follow. */
function everyMatch(matched: Matched): { rule: Rule; fragment: string }[] {
  const single = matched.rules.flatMap((rules, index) => {
    return [...rules]
      .sort((one, other) => one.order - other.order)
      .map((rule) => ({ rule, fragment: matched.commands[index]?.fragment ?? "" }));
  });
  return [...single, ...matched.pipes];
}

/** Finds certain writes to files that the policy does not allow. Judged here for a reason in the reply: the world only refuses. */
function byWrite(policy: CompiledPolicy, read: ReadCommand, where: Where): Finding[] {
  const homeMoves = read.fragments.some(setsHome);
  return decisiveCommands(read).flatMap((command) => {
    const wrong = wrongWrite(policy, command, where, homeMoves);
    if (wrong === null) return [];
    const { list, pattern, reason, held } = wrong;
    const key = list === "fs.write" ? "write" : "denyWrite";
    const rule = keyRule(policy, key, pattern, command.fragment, reason);
    return [{ verdict: "deny" as const, rule, ...(held ? { unlessIsolated: true as const } : {}) }];
  });
}

function setsHome({ assignments, words }: SimpleCommand): boolean {
  return (
    assignments.some(({ name }) => name === "HOME") || words.some(({ text }) => text.startsWith("HOME="))
  );
}

function byOperator(policy: CompiledPolicy, read: ReadCommand): Finding[] {
  if (policy.document.commands?.shell_operators !== false) return [];
  const operator = read.operator ?? (read.incomplete ? "(unread)" : null);
  if (operator === null) return [];
  const reason = `shell_operators is false: pipes, lists, redirects and substitutions are refused, and this command has '${operator}'`;
  return [
    { verdict: "deny", rule: keyRule(policy, "operators", "shell_operators: false", read.text, reason) },
  ];
}

/** Denies programs outside a non-empty `commands.allowed`; rules that ask or isolate count as listed. */
function byAllowedList(policy: CompiledPolicy, matched: Matched): Finding[] {
  if (policy.rules.count["commands.allowed"] === 0) return [];
  return matched.commands.flatMap((command, index) => {
    const [program] = command.words;
    if (program === undefined || program.kind !== "literal" || command.reduced === true) return [];
    const listed = [...(matched.rules[index] ?? [])].some((rule) => LISTED.has(rule.list));
    const reason = "no entry of commands.allowed matches this command";
    const rule = keyRule(policy, "allowed", policy.rules.allowedInWords, command.fragment, reason);
    return listed ? [] : [{ verdict: "deny" as const, rule }];
  });
}

export const LISTED: ReadonlySet<RuleList> = new Set<RuleList>([
  "commands.allowed",
  "commands.isolated",
  "commands.ask",
]);

/** An absent key means isolate, or, beside a `commands.allowed` list, deny: an unknown program is not listed. */
function byOpacity(policy: CompiledPolicy, read: ReadCommand): Finding[] {
  const said = policy.document.commands?.opaque;
  const verdict = said ?? (policy.rules.count["commands.allowed"] > 0 ? "deny" : "isolate");
  if (verdict === "allow") return [];
  return read.opaque.map((spot) => ({
    verdict,
    rule: keyRule(policy, "opaque", `opaque: ${verdict}`, spot.fragment, spot.reason),
  }));
}

const UNAPPROVED = "approval.require is true, and no entry of approval.auto_approve matches this command";
const INTO_FILES =
  "approval.require is true, and approval.auto_approve covers the program but not the file that its output is written to";

/**
 * Selects commands with output redirected to a file: `git log --format=TEXT > Makefile` would choose the programs of an approved
 * `make`.
 */
function writing(commands: readonly SimpleCommand[]): readonly SimpleCommand[] {
  return commands.filter(({ redirects, reduced }) => reduced !== true && redirects.some(writesFile));
}

function writesFile({ operator, target }: CommandRedirect): boolean {
  if (target === null || operator === "<" || operator === "<<<" || operator === "<&") return false;
  if (target.kind !== "literal") return true;
  if (operator === ">&" && /^(?:\d+-?|-)$/.test(target.text)) return false;
  return !/^\/dev\/(?:null|stdout|stderr)$/.test(target.text);
}

function byApproval(policy: CompiledPolicy, matched: Matched, read: ReadCommand): Finding[] {
  if (!asksForAll(policy)) return [];
  const asks = (fragment: string, reason: string): Finding => ({
    verdict: "ask",
    rule: keyRule(policy, "require", "require: true", fragment, reason),
  });
  const unapproved = matched.commands.filter(
    (command, index) =>
      command.words.length > 0 &&
      command.reduced !== true &&
      ![...(matched.rules[index] ?? [])].some((rule) => rule.list === "approval.auto_approve"),
  );
  const asksToWrite = ({ fragment }: SimpleCommand): Finding => asks(fragment, INTO_FILES);
  const spots = [...unapproved, ...read.opaque].map((one) => one.fragment);
  return [
    ...spots.map((fragment) => asks(fragment, UNAPPROVED)),
    ...writing(matched.commands).map(asksToWrite),
  ];
}

function rulesOf(matched: Matched, list: RuleList): DecisionRule[] {
  return everyMatch(matched)
    .filter(({ rule }) => rule.list === list)
    .map(({ rule, fragment }) => named(rule, fragment));
}

export function named(rule: Rule, fragment: string): DecisionRule {
  const { list, pattern, source, reason } = rule;
  return { list, pattern, fragment, source, ...(reason === undefined ? {} : { reason }) };
}

const KEYS = {
  operators: "commands.shell_operators",
  allowed: "commands.allowed",
  opaque: "commands.opaque",
  require: "approval.require",
  write: "fs.write",
  denyWrite: "fs.deny_write",
  memory: "commands.memory_programs",
} as const;

export function keyRule(
  policy: CompiledPolicy,
  key: keyof typeof KEYS,
  pattern: string,
  fragment: string,
  reason: string,
): DecisionRule {
  return {
    list: KEYS[key],
    pattern,
    fragment: fragment.slice(0, MAX_FRAGMENT_LENGTH),
    source: policy.rules.sources[key],
    reason,
  };
}

/**
 * Returns the commands without which the whole line fails: commands of a pipeline or joined by `&&`, also in `( )`, `{ }`, `sh
 * -c` and behind wrappers. After `;`, `||`, `&` or inside a loop or a function the line may go on without the command, or never
 * reach the command: only the run decides about such a write.
 */
function decisiveCommands(read: ReadCommand): readonly SimpleCommand[] {
  if (read.incomplete) return [];
  const isHandedDown = handedDown(read.fragments);
  return read.fragments.filter((command) => command.decides === true && isHandedDown(command));
}

/** Returns a test for commands whose wrappers all run the command here, once, and exit with the command's status. */
function handedDown(commands: readonly SimpleCommand[]): (command: SimpleCommand) => boolean {
  const others = new Map<string, number>();
  const spotOf = ({ start, end }: SimpleCommand): string => `${start}:${end}`;
  for (const command of commands) {
    if (handsOn(command)) continue;
    const spot = spotOf(command);
    others.set(spot, Math.min(others.get(spot) ?? command.depth, command.depth));
  }
  return (command) => command.depth === 0 || (others.get(spotOf(command)) ?? command.depth) >= command.depth;
}

/** Wrappers that run a single command, once, here, and exit with its status; a shell does the same for a script. */
const HANDING_ON: ReadonlySet<string> = new Set([
  ...["sudo", "doas", "env", "nohup", "nice", "ionice", "timeout", "time", "stdbuf", "setsid"],
  ...["command", "builtin", "exec", "eval"],
]);

function handsOn({ words }: SimpleCommand): boolean {
  const [program] = words;
  const name = baseName(program?.text ?? "");
  return HANDING_ON.has(name) || languageOf(name) !== undefined;
}
