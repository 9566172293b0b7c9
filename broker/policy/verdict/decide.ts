import { builtinsOf } from "../shell/builtins.ts";
import type { CommandWord, ReadCommand, SimpleCommand } from "../words/command.ts";
import type {
  CompiledPolicy,
  Decision,
  DecisionRule,
  PlainVerdict,
  PolicyMode,
  Verdict,
  Where,
} from "../rules/decision.ts";
import { type Finding, findings } from "./findings.ts";
import { programsOf, runsAnything } from "../rules/runner-programs.ts";

const STRICTNESS: Readonly<Record<PlainVerdict, number>> = { allow: 0, isolate: 1, ask: 2, deny: 3 };
const OBSERVED: Readonly<Record<PlainVerdict, Verdict>> = {
  allow: "allow",
  isolate: "would_isolate",
  ask: "would_ask",
  deny: "would_deny",
};

/** Decides about a command by a single policy. Pure; throws nothing. */
export function decide(policy: CompiledPolicy, read: ReadCommand, where: Where): Decision {
  return asDecision(judge(policy, read, where, policy.mode), policy.mode, read);
}

/**
 * Decides by several policies about a command with several possible environments (the user's home folder, and a home given by the
 * caller): the strictest verdict wins, and enforce beats observe.
 */
export function decideAll(
  policies: readonly [CompiledPolicy, ...CompiledPolicy[]],
  read: ReadCommand,
  wheres: readonly [Where, ...Where[]],
): Decision {
  const [base] = policies;
  const [usual] = wheres;
  const mode = policies.some((policy) => policy.mode === "enforce") ? "enforce" : "observe";
  const judgements = policies.flatMap((policy) =>
    wheres.map((where) => ({ where, judged: judge(policy, read, where, mode) })),
  );
  const strictest = judgements
    .map(({ judged }) => judged)
    .reduce((best, one) => (STRICTNESS[one.verdict] > STRICTNESS[best.verdict] ? one : best));
  const warnings = judgements.filter(({ where }) => where === usual).flatMap(({ judged }) => judged.warnings);
  const isIsolated = judgements.some(({ judged }) => judged.approved === "isolate");
  const silent = policies.find((policy) => policy.document.approval?.interactive === false) ?? base;
  const plainly = judgements.filter(({ judged }) => judged.isolatedBy.length === 0);
  const isolatedBy = policies
    .map(({ id }) => id)
    .filter((id) => plainly.every(({ judged }) => judged.policyId !== id));
  const approved = isIsolated ? "isolate" : "allow";
  const judgement = answered({ ...strictest, warnings, approved, isolatedBy }, silent);
  return asDecision(judgement, mode, read);
}

interface Judgement {
  readonly verdict: PlainVerdict;
  readonly rule: DecisionRule | null;
  readonly warnings: readonly DecisionRule[];
  readonly approved: Decision["approved"];
  readonly isolatedBy: readonly string[];
  readonly policyId: string;
}

/**
 * Decides by a policy alone. A finding lifted by isolation is dropped only if the policy's own rule isolates the command. A
 * narrowing policy's rule does not count, because the caller chooses the narrowing policy. In observe mode (`mode` of all
 * policies together) every command runs plainly.
 */
function judge(policy: CompiledPolicy, read: ReadCommand, where: Where, mode: PolicyMode): Judgement {
  const { found: all, warnings, allowedBy } = findings(policy, read, where);
  const isIsolated = mode === "enforce" && all.some(({ verdict }) => verdict === "isolate");
  const found = all.filter(({ unlessIsolated }) => !(isIsolated && unlessIsolated === true));
  const strictest = found.reduce<Finding | null>(
    (best, one) => (best === null || STRICTNESS[one.verdict] > STRICTNESS[best.verdict] ? one : best),
    null,
  );
  const { verdict, rule } = strictest ?? { verdict: "allow" as const, rule: allowedBy };
  const approved = found.some((one) => one.verdict === "isolate") ? "isolate" : "allow";
  const isolatedBy = isIsolated ? [policy.id] : [];
  return answered({ verdict, rule, warnings, approved, isolatedBy, policyId: policy.id }, policy);
}

/** Turns ask into deny where nobody may be asked. */
function answered(judgement: Judgement, policy: CompiledPolicy): Judgement {
  if (judgement.verdict !== "ask" || policy.document.approval?.interactive !== false) return judgement;
  const { rule } = judgement;
  const silent = "Nobody can be asked: approval.interactive is false";
  const reason = rule?.reason === undefined ? silent : `${rule.reason} (${silent})`;
  return { ...judgement, verdict: "deny", rule: rule === null ? null : { ...rule, reason } };
}

function asDecision(judgement: Judgement, mode: PolicyMode, read: ReadCommand): Decision {
  return {
    ...judgement,
    mode,
    builtins: builtinsOf(read),
    verdict: mode === "observe" ? OBSERVED[judgement.verdict] : judgement.verdict,
    // In observe mode every command runs plainly.
    approved: mode === "observe" ? "allow" : judgement.approved,
  };
}

/** Most sentences in a reply; the rest are counted. */
const MOST = 8;

/** Returns a sentence for each fact that only a run decides; empty when the command's words answer all rules. Pure. */
export function undecidedIn(read: ReadCommand): readonly string[] {
  const all = [
    ...read.opaque.map(({ reason }) => reason),
    ...read.fragments.flatMap(unknownWords),
    ...programsThatRunOthers(read.fragments),
  ];
  const sentences = [...new Set(all)];
  const more = sentences.length - MOST;
  return more > 0 ? [...sentences.slice(0, MOST), `${more} more are not listed`] : sentences;
}

/** Skips the program word: an unknown program is opaque, with a sentence of its own. */
function unknownWords({ words, redirects, fragment, depth }: SimpleCommand): readonly string[] {
  if (depth > 0) return [];
  const targets = redirects.flatMap(({ target }) => (target === null ? [] : [target]));
  const shown = fragment.length > 80 ? `${fragment.slice(0, 79)}…` : fragment;
  return [...words.slice(1), ...targets]
    .filter(isUnknown)
    .map(({ raw }) => `The value of '${raw}' in '${shown}' is only known when the command runs`);
}

function isUnknown({ kind }: CommandWord): boolean {
  return kind === "dynamic";
}

function programsThatRunOthers(commands: readonly SimpleCommand[]): readonly string[] {
  return programsOf(commands)
    .filter(runsAnything)
    .map(
      (name) =>
        `'${name}' may start programs that the command line does not name; the same rules decide about each when it starts`,
    );
}
