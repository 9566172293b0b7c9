import type { PolicyDocument } from "../../schemas/generated/types.ts";
import { compiled } from "../learn/additions.ts";
import { plainVerdict } from "../policy-cases/judge-case.ts";
import {
  type CompiledPolicy,
  type Decision,
  decide,
  parsePolicy,
  type ReadCommand,
  readArgv,
  readShell,
  type Where,
} from "../policy/index.ts";
import { patternWords } from "../policy/rules/pattern.ts";
import { quoted } from "../model/refusal.ts";
import type { Sources } from "./policy-file.ts";
import type { Never, Standing, Wish } from "./wish.ts";

/**
 * Judges a wish to allow a command pattern: the policy's present answer, and the missing items. A pattern covers many commands,
 * so samples are tried, and the commands named by each refusing rule. Pure.
 */
export function commandWish(
  pattern: string,
  policy: CompiledPolicy,
  sources: Sources,
  where: Where,
): Wish | Never {
  const read = onlyAllowing(pattern);
  if ("never" in read) return read;
  const { document } = policy;
  const samples = samplesOf(pattern, where);
  const refusing = compiled(withoutAllowing(document), policy.source);
  const decisions = samples.map((sample) => decide(refusing, sample, where));
  const verdicts = decisions.map(({ verdict }) => plainVerdict(verdict));
  const stops = verdicts.every((verdict) => verdict === "deny" || verdict === "ask");
  const isolates = verdicts.every((verdict) => verdict === "isolate");
  const given = {
    allowed: allowedBy(pattern, policy, samples, sources, where),
    approved: approvedBy(pattern, policy, samples, sources, where),
  };
  const additions = [
    ...(given.allowed === undefined ? [{ list: "commands.allowed" as const, value: pattern }] : []),
    ...(given.approved === undefined ? [{ list: "approval.auto_approve" as const, value: pattern }] : []),
  ];
  const refusals = stops ? standingsOf(decisions, policy, sources) : [];
  const partly = overlapping(pattern, document, sources, where).filter(
    ({ source, pattern: each }) => !refusals.some((one) => one.source === source && one.pattern === each),
  );
  const already = given.allowed ?? given.approved;
  return {
    additions,
    ...(additions.length > 0 || already === undefined ? {} : { already }),
    refusals,
    partly,
    notes: isolates ? standingsOf(decisions, policy, sources).map(isolatedNote) : [],
  };
}

function isolatedNote({ list, pattern, source }: Standing): string {
  return `The command runs isolated, and its changes are held until they are applied: '${pattern}' in ${list}, ${source}`;
}

/** Returns a policy with the pattern as its only allowing rule, or why the pattern is invalid. */
function onlyAllowing(pattern: string): { readonly policy: CompiledPolicy } | Never {
  const loaded = parsePolicy(onlyIn("allowed", pattern), "one");
  if ("ok" in loaded) return { policy: loaded.ok };
  return {
    never: `Cannot allow ${quoted(pattern)}: ${loaded.problems[0]?.message ?? "it is not a pattern"}`,
  };
}

function onlyIn(list: "allowed" | "denied", pattern: string): string {
  return JSON.stringify({
    id: "one",
    name: "one",
    mode: "enforce",
    commands: { [list]: [pattern], opaque: "allow" },
  });
}

/** Returns the policy without its allowing lists, to find refusals. */
function withoutAllowing(document: PolicyDocument): PolicyDocument {
  const { commands, approval } = document;
  const { allowed = [], ...others } = commands ?? {};
  return {
    ...document,
    // Removing the list must not change the default of an absent `opaque`.
    commands: {
      ...others,
      opaque: others.opaque ?? (allowed.length > 0 ? "deny" : "isolate"),
    },
    approval: {
      ...approval,
      require: false,
      interactive: true,
      auto_approve: [],
    },
  };
}

/** Returns sample commands for a pattern: its words alone, and, with a last `*`, further words and options. */
function samplesOf(pattern: string, where: Where): readonly ReadCommand[] {
  const words = patternWords(pattern).map((word) => withFolders(word, where));
  const rest = words.at(-1) === "*";
  const plain = (rest ? words.slice(0, -1) : words).map((word) => word.replaceAll("*", "x"));
  const own = plain.length === 0 ? ["x"] : plain;
  const texts = rest ? [own, [...own, "x"], [...own, "--x", "y"]] : [own];
  return texts.map((text) => (text.includes("|") ? readShell(text.join(" ")) : readArgv(text)));
}

function withFolders(word: string, { home, project }: Where): string {
  return word
    .replace(/^(~|\$HOME|\$\{HOME\})(?=\/|$)/, () => home)
    .replace(/^(\$PROJECT|\$\{PROJECT\})(?=\/|$)/, () => project);
}

/** Returns the line of `commands.allowed` that covers all samples; for an empty list, the list itself. */
function allowedBy(
  pattern: string,
  policy: CompiledPolicy,
  samples: readonly ReadCommand[],
  sources: Sources,
  where: Where,
): Wish["already"] {
  const rules = policy.document.commands?.allowed ?? [];
  const list = ["commands", "allowed"] as const;
  if (rules.length === 0)
    return {
      source: sources(list),
      how: `commands.allowed is ${policy.document.commands?.allowed === undefined ? "not set" : "empty"}, so every command that no rule refuses may run`,
    };
  return coveredIn(rules.map(patternOf), pattern, samples, where, (at, each) => ({
    source: sources([...list, at]),
    how: `'${each}' in commands.allowed`,
  }));
}

/** Returns the line of `approval.auto_approve` that covers all samples, for a policy in which every other command asks. */
function approvedBy(
  pattern: string,
  { document }: CompiledPolicy,
  samples: readonly ReadCommand[],
  sources: Sources,
  where: Where,
): Wish["already"] {
  const { approval } = document;
  if (approval?.require !== true)
    return {
      source: sources(["approval", "require"]),
      how: "no rule asks about it",
    };
  return coveredIn((approval.auto_approve ?? []).map(patternOf), pattern, samples, where, (at, each) => ({
    source: sources(["approval", "auto_approve", at]),
    how: `'${each}' in approval.auto_approve`,
  }));
}

function coveredIn(
  patterns: readonly string[],
  pattern: string,
  samples: readonly ReadCommand[],
  where: Where,
  told: (at: number, pattern: string) => Wish["already"],
): Wish["already"] {
  const at = patterns.findIndex((each) => {
    if (each === pattern) return true;
    const one = onlyAllowing(each);
    return (
      !("never" in one) && samples.every((sample) => decide(one.policy, sample, where).verdict === "allow")
    );
  });
  return at === -1 ? undefined : told(at, patterns[at] ?? "");
}

function patternOf(rule: string | { readonly pattern: string }): string {
  return typeof rule === "string" ? rule : rule.pattern;
}

/** Finds rules that refuse part of the pattern: read as a refusing rule, the pattern matches commands named by these rules. */
function overlapping(
  pattern: string,
  { commands = {} }: PolicyDocument,
  sources: Sources,
  where: Where,
): readonly Standing[] {
  const loaded = parsePolicy(onlyIn("denied", pattern), "one");
  if ("problems" in loaded) return [];
  const meets = (sample: ReadCommand): boolean => decide(loaded.ok, sample, where).verdict === "deny";
  return (["denied", "ask"] as const).flatMap((list) =>
    (commands[list] ?? []).flatMap((rule, at) =>
      samplesOf(patternOf(rule), where).some(meets)
        ? [{ list: `commands.${list}`, pattern: patternOf(rule), source: sources(["commands", list, at]) }]
        : [],
    ),
  );
}

/** Returns the deciding rules, with their lines in the file. */
function standingsOf(
  decisions: readonly Decision[],
  { document }: CompiledPolicy,
  sources: Sources,
): readonly Standing[] {
  const found = decisions.flatMap(({ rule }) => {
    if (rule === null) return [];
    const path = rule.list.split(".");
    const items = path.reduce<unknown>(
      (value, key) =>
        typeof value === "object" && value !== null ? (value as Record<string, unknown>)[key] : undefined,
      document,
    );
    const at = Array.isArray(items) ? items.map(patternOf).indexOf(rule.pattern) : -1;
    return [
      {
        list: rule.list,
        pattern: rule.pattern,
        source: sources(at === -1 ? path : [...path, at]),
      },
    ];
  });
  return found.filter(
    (one, at) =>
      found.findIndex(({ source, pattern }) => source === one.source && pattern === one.pattern) === at,
  );
}
