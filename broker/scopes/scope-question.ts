/** The question to a person about scopes, and the facts that bind the answer. */
import { isRefusal, type Refusal } from "../model/refusal.ts";
import { createHash } from "node:crypto";
import { isLabel } from "../policies/assignment.ts";
import { folderChanged, policyChanged } from "../approvals/ask-person.ts";
import type { Question } from "../approvals/question.ts";
import { type GroundNeeds, groundOf } from "../policies/judge.ts";
import { isBelowSettings } from "../project/projects.ts";
import { type PlaceNeeds, placeOf } from "../project/request.ts";
import { redact } from "../secrets/redact.ts";
import { netNotes } from "./net-scope.ts";
import type { Scope } from "../model/scope.ts";
import { scopeText } from "./place-scope.ts";
import { movedSince, type ScopeCall } from "./scope-call.ts";

/** Dependencies on the broker. */
export type QuestionNeeds = PlaceNeeds & GroundNeeds;

const DEFAULT_TIMEOUT_SECS = 300;

/** Makes the question, or a refusal when outdated. `missing`: scopes beyond the policy. */
export function scopeQuestion(
  broker: QuestionNeeds,
  call: ScopeCall,
  missing: readonly Scope[],
): Question | Refusal {
  const over = outdatedBecause(broker, call, missing);
  if (over !== undefined) return over;
  const { effective } = call.ground;
  const [, narrowing] = effective.policies;
  const texts = missing.map(scopeText);
  return {
    kind: "scopes",
    key: keyOf(call, missing),
    span: call.span,
    agent: call.agent,
    isLabel: isLabel(broker.config(), call.agent),
    session: call.session.id,
    project: call.place.project,
    cwd: call.place.cwd,
    policyId: effective.id,
    policyHash: effective.hash,
    policies: effective.policies.map(({ source, hash }) => ({ source, hash })),
    profile: narrowing?.id ?? null,
    mode: effective.policies.some(({ mode }) => mode === "enforce") ? "enforce" : "observe",
    rule: null,
    recordedRule: null,
    reason: call.request.reason ?? null,
    subject: { scopes: texts },
    recorded: redact(texts.join(" "), "scopes").text,
    offers: ["once", "session"],
    notes: missing.flatMap((scope) => notesOf(broker, scope)),
    timeoutMs: timeoutMs(call),
    outdated: () => outdatedBecause(broker, call, missing),
    previewFirst: false,
  };
}

/** How long a question waits; also a token's lifetime, capped at an hour. */
export function timeoutMs({ ground: { effective } }: Pick<ScopeCall, "ground">): number {
  const secs = effective.policies.map(
    ({ document }) => document.approval?.timeout_secs ?? DEFAULT_TIMEOUT_SECS,
  );
  return Math.min(...secs) * 1000;
}

/** Why an answer no longer counts: changed policies, or another folder at the path. */
function outdatedBecause(
  broker: QuestionNeeds,
  call: ScopeCall,
  missing: readonly Scope[],
): Refusal | undefined {
  const { agent, place, request, ground } = call;
  const now = placeOf(broker, place.cwd);
  if (isRefusal(now)) return now;
  const holds = groundOf(broker, agent, now, request.profile);
  if (isRefusal(holds)) return holds;
  const { hash, id } = ground.effective;
  if (holds.effective.hash !== hash) return policyChanged({ policyHash: hash, policyId: id });
  if (now.identity !== place.identity || now.project !== place.project) return folderChanged(place.cwd, id);
  return movedSince(missing);
}

/** Omits the reason: the same scopes for another reason are the same question. */
function keyOf({ session, place, ground }: ScopeCall, missing: readonly Scope[]): string {
  const places = missing.map((scope) => `${scopeText(scope)} ${identityOf(scope)}`).sort();
  const parts = ["scopes", ground.effective.hash, session.id, place.identity, places];
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}

/** Identifies a path; a network name has no identity beyond its text. */
function identityOf(scope: Scope): string {
  return scope.kind === "net" ? "" : scope.identity;
}

function notesOf(broker: Pick<QuestionNeeds, "around">, scope: Scope): readonly string[] {
  if (scope.kind === "net") return netNotes(scope);
  const { kind, path, type, named } = scope;
  const where = named.path === path ? [] : [`'${named.path}' leads to '${path}'`];
  const wide = type === "folder" ? [`Everything below '${path}'`] : [];
  const settings =
    kind === "fs.write" && isBelowSettings(path, broker.around.home)
      ? [`'${path}' lies in a settings folder: your programs may run or trust what is written there`]
      : [];
  return [...where, ...wide, ...settings];
}
