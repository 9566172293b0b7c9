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

/** What the policy says about a command that was read. Pure; throws nothing. */
export function decide(policy: CompiledPolicy, read: ReadCommand, where: Where): Decision {
  return asDecision(judge(policy, read, where, policy.mode), policy.mode, read);
}

/** {@link decideAll} for two policies, or one, in one place. */
export function decideBoth(
  assigned: CompiledPolicy,
  narrowing: CompiledPolicy | null,
  read: ReadCommand,
  where: Where,
): Decision {
  return decideAll(narrowing === null ? [assigned] : [assigned, narrowing], read, [where]);
}

/**
 * What several policies together say of a command that several readings of its surroundings fit (the home folder of the
 * user, and the one that the caller gives it): the strictest verdict of all, and enforce beats observe.
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
 * What a policy says for itself. Its own rule must isolate the command, and not that of a policy that narrows it: a caller chooses that
 * one, and it lifts nothing. Observing (`mode` is that of all policies together) runs everything plainly.
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

/** Where nobody may be asked, what asks is refused. */
function answered(judgement: Judgement, policy: CompiledPolicy): Judgement {
  if (judgement.verdict !== "ask" || policy.document.approval?.interactive !== false) return judgement;
  const { rule } = judgement;
  const silent = "Nobody may be asked: approval.interactive is false";
  const reason = rule?.reason === undefined ? silent : `${rule.reason} (${silent})`;
  return { ...judgement, verdict: "deny", rule: rule === null ? null : { ...rule, reason } };
}

function asDecision(judgement: Judgement, mode: PolicyMode, read: ReadCommand): Decision {
  return {
    ...judgement,
    mode,
    builtins: builtinsOf(read),
    verdict: mode === "observe" ? OBSERVED[judgement.verdict] : judgement.verdict,
    // Observing runs everything plainly.
    approved: mode === "observe" ? "allow" : judgement.approved,
  };
}

/** What of a command only its run decides, for whoever asks before. Pure. */

/** Sentences; more are counted. */
const MOST = 8;

/** None when the words of the command say all that its rules ask about. */
export function undecidedIn(read: ReadCommand): readonly string[] {
  const all = [
    ...read.opaque.map(({ reason }) => reason),
    ...read.fragments.flatMap(unknownWords),
    ...programsThatRunOthers(read.fragments),
  ];
  const sentences = [...new Set(all)];
  const more = sentences.length - MOST;
  return more > 0 ? [...sentences.slice(0, MOST), `${more} more are left out here`] : sentences;
}

/** An unknown program word is opaque, which says so by itself. */
function unknownWords({ words, redirects, fragment, depth }: SimpleCommand): readonly string[] {
  if (depth > 0) return [];
  const targets = redirects.flatMap(({ target }) => (target === null ? [] : [target]));
  const shown = fragment.length > 80 ? `${fragment.slice(0, 79)}…` : fragment;
  return [...words.slice(1), ...targets]
    .filter(isUnknown)
    .map(({ raw }) => `What '${raw}' stands for in '${shown}' is only known when the command runs`);
}

function isUnknown({ kind }: CommandWord): boolean {
  return kind === "dynamic";
}

function programsThatRunOthers(commands: readonly SimpleCommand[]): readonly string[] {
  return programsOf(commands)
    .filter(runsAnything)
    .map(
      (name) =>
        `'${name}' may start programs that no word here names: each is decided at its start, by the same rules`,
    );
}
