import type { DecisionRule, PolicyDocument } from "../../schemas/generated/types.ts";
import { plainVerdict } from "../policy-cases/judge-case.ts";
import {
  type CompiledPolicy,
  decide,
  readArgv,
  type ReadCommand,
  readShell,
  type Where,
} from "../policy/index.ts";
import { compiled, type LearnedList, withAdditions } from "./additions.ts";
import { quoted } from "./generalise.ts";
import type { ObservedCommand } from "./observations.ts";
import { posix } from "node:path";
import { type CommandWord, HOME_MARK, type SimpleCommand } from "../policy/words/command.ts";

/** A pattern needed by a simple command of an observed command. */
export type Need = ExactPattern & { readonly list: LearnedList; readonly where: Where };

/** The proposal's answer to an observed command. */
export type Fate =
  /** The current policy allows the command, or another policy stopped the command. */
  | { readonly kind: "allowed" }
  /** The command runs and its changes are held. No rule can make an exception from `commands.isolated`. */
  | { readonly kind: "isolated"; readonly rule: DecisionRule }
  | { readonly kind: "learned"; readonly needs: readonly Need[] }
  /** Only removing a denial would help. */
  | { readonly kind: "denied"; readonly rule: DecisionRule }
  /** `commands.ask`: a person answers, and may answer for good. */
  | { readonly kind: "asked"; readonly rule: DecisionRule }
  | { readonly kind: "unsayable"; readonly rule: DecisionRule | null; readonly why: string };

export type JudgedCommand = {
  readonly observed: ObservedCommand;
  readonly read: ReadCommand;
  readonly where: Where;
  readonly fate: Fate;
};

type Open = Omit<JudgedCommand, "fate"> & { readonly needs: Need[]; fate: Fate | undefined };

/** Each round finds a single need of each command. */
const MAX_ROUNDS = 64;

/** The deciding key, and the list that can lift the decision. */
const LEARNABLE: Readonly<Record<string, LearnedList>> = {
  "commands.allowed": "commands.allowed",
  "approval.require": "approval.auto_approve",
};

/**
 * Finds the patterns that each observed command needs to be allowed. `scopes` are already proposed writes. A command is learned
 * whole or not at all. Pure.
 */
export function judgeCommands(
  document: PolicyDocument,
  file: string,
  scopes: readonly string[],
  observed: readonly ObservedCommand[],
  whereOf: (cwd: string) => Where,
): readonly JudgedCommand[] {
  const commands = observed.map((one): Open => open(one, whereOf(one.cwd)));
  const now = compiled(document, file);
  for (const one of commands) if (isAllowed(now, one)) one.fate = { kind: "allowed" };
  const writes = scopes.map((value) => ({ list: "fs.write" as const, value }));
  for (let round = 0; round < MAX_ROUNDS && commands.some(({ fate }) => fate === undefined); round += 1) {
    const needs = commands.flatMap((one) => one.needs);
    const policy = compiled(withAdditions(document, [...writes, ...asItems(needs)]), file);
    for (const one of commands) one.fate ??= nextFate(policy, one);
  }
  return commands.map(({ observed: one, read, where, fate }) => {
    return { observed: one, read, where, fate: fate ?? unsayable(null, "the command has too many parts") };
  });
}

/** Each pattern once for each list. */
export function asItems(
  needs: readonly Need[],
): readonly { readonly list: LearnedList; readonly value: string }[] {
  const items = new Map(needs.map(({ list, pattern }) => [`${list} ${pattern}`, { list, value: pattern }]));
  return [...items.values()];
}

function open(observed: ObservedCommand, where: Where): Open {
  const { argv, text } = observed;
  const read = argv === undefined ? readShell(text) : readArgv(argv);
  return { observed, read, where, needs: [], fate: undefined };
}

function isAllowed(policy: CompiledPolicy, { read, where }: Open): boolean {
  return plainVerdict(decide(policy, read, where).verdict) === "allow";
}

/** Returns undefined after adding a further need to `needs`. */
function nextFate(policy: CompiledPolicy, one: Open): Fate | undefined {
  const { verdict, rule } = decide(policy, one.read, one.where);
  const plain = plainVerdict(verdict);
  if (plain === "allow") return { kind: "learned", needs: one.needs };
  if (rule === null) return unsayable(null, "no rule is named");
  if (plain === "isolate")
    return one.needs.length > 0 ? { kind: "learned", needs: one.needs } : { kind: "isolated", rule };
  if (rule.list === "commands.denied" || rule.list === "fs.deny_write") return { kind: "denied", rule };
  if (rule.list === "commands.ask") return { kind: "asked", rule };
  const list = LEARNABLE[rule.list];
  if (rule.list === "fs.write") return unsayable(rule, "it writes to a place that is not proposed");
  if (list === undefined) return unsayable(rule, `no rule can make an exception from ${rule.list}`);
  return addNeed(one, list, rule);
}

function addNeed(one: Open, list: LearnedList, rule: DecisionRule): Fate | undefined {
  const known = new Set(one.needs.filter((need) => need.list === list).map(({ pattern }) => pattern));
  const parts = one.read.fragments.filter(
    ({ fragment, words, reduced }) => fragment === rule.fragment && words.length > 0 && reduced !== true,
  );
  if (parts.length === 0) return unsayable(rule, `'${rule.fragment}' is only known when it runs`);
  for (const part of parts) {
    const exact = exactPattern(part, one.where);
    if ("why" in exact) return unsayable(rule, exact.why);
    if (known.has(exact.pattern)) continue;
    one.needs.push({ ...exact, list, where: one.where });
    return undefined;
  }
  return unsayable(rule, "even its exact words would not be allowed, because of the words around them");
}

function unsayable(rule: DecisionRule | null, why: string): Fate {
  return { kind: "unsayable", rule, why };
}

/** A pattern for exactly a single simple command, and the command's words. */
type ExactPattern = { readonly pattern: string; readonly words: readonly string[] };

/** As `command_pattern` in the schema. */
const MAX_PATTERN = 4096;

/**
 * Returns the pattern of exactly this command, or why no pattern exists: patterns cannot express a literal `*`, a quote, a lone
 * `|`, or a word unknown before the run. Characters that a reviewer could not read are not proposed either. Pure.
 */
function exactPattern(command: SimpleCommand, where: Where): ExactPattern | { readonly why: string } {
  const words = command.words.map((word, index) => patternWord(word, index, command, where));
  const unsayable = words.find((word) => "why" in word);
  if (unsayable !== undefined && "why" in unsayable) return unsayable;
  const pattern = words.map((word) => ("why" in word ? "" : word.pattern)).join(" ");
  if (pattern.length > MAX_PATTERN)
    return { why: `the command is longer than the ${MAX_PATTERN} characters of a pattern` };
  return { pattern, words: command.words.map(({ text }) => text.replace(HOME_MARK, where.home)) };
}

type PatternWord = { readonly pattern: string } | { readonly why: string };

function patternWord(word: CommandWord, index: number, command: SimpleCommand, where: Where): PatternWord {
  const { kind, text, raw } = word;
  if (kind !== "literal") return { why: `'${raw}' is only known when it runs` };
  const isHome = text.startsWith(HOME_MARK);
  const plain = isHome ? text.slice(HOME_MARK.length) : text;
  const why = unsayableIn(plain, isHome);
  if (why !== undefined) return { why };
  if (index === 0 && plain.includes("/"))
    return programPath(isHome ? `$HOME${plain}` : plain, command, where);
  return { pattern: quoted(isHome ? `$HOME${plain}` : plain) };
}

function unsayableIn(text: string, isHome: boolean): string | undefined {
  // Line breaks, terminal escapes, and marks that reorder displayed text.
  if (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(text))
    return "it contains characters that are invisible in a review";
  if (/["'*]/.test(text)) return "a pattern cannot contain a quote or a literal '*'";
  if (text === "|") return "a pattern cannot contain a literal '|'";
  if (!isHome && /^(~|\$HOME|\$\{HOME\}|\$PROJECT|\$\{PROJECT\})(\/|$)/.test(text))
    return `a pattern would read '${text}' as a folder`;
  return undefined;
}

/** A program in a folder gets its full path: the same relative path is another program in another project. */
function programPath(text: string, command: SimpleCommand, where: Where): PatternWord {
  if (text.startsWith("/") || text.startsWith("$HOME/")) return { pattern: quoted(text) };
  if (command.moves === null || command.moves.length > 0)
    return { why: `'${text}' is a program in a folder that the command changes to` };
  const path = posix.resolve(where.cwd, text);
  return {
    pattern: quoted(path.startsWith(`${where.home}/`) ? `$HOME${path.slice(where.home.length)}` : path),
  };
}
