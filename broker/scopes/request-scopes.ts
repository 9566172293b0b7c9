/** Handles a request for scopes: parse, refuse, ask a person, issue the token. */
import { isRefusal, type Refusal, refusal } from "../model/refusal.ts";
import type { RequestScopesReply, RequestScopesRequest } from "../../schemas/generated/types.ts";
import type { Granted } from "../approvals/question.ts";
import type { Approvals } from "../approvals/approvals.ts";
import { askPerson } from "../approvals/ask-person.ts";
import { cannotRecord } from "../model/refusal.ts";
import { type NetRules, netRules } from "../network/rules.ts";
import { silentPolicy } from "../model/effective.ts";
import { newId } from "../model/ids.ts";
import { groundOf } from "../policies/judge.ts";
import { placeOf } from "../project/request.ts";
import { covers, type SpecOfFiles, type Surroundings, worldSpec } from "../worlds/world-spec.ts";
import type { NamedScope, NetScope, Scope } from "../model/scope.ts";
import { deniedPlaces } from "./denied-places.ts";
import { scopeEntry, scopeText } from "./place-scope.ts";
import { readScope } from "./read-scope.ts";
import { isNetGiven, netNeverGranted } from "./refuse-net-scope.ts";
import { neverGranted } from "./refuse-scope.ts";
import { placeAll, type ScopeCall } from "./scope-call.ts";
import { type QuestionNeeds, scopeQuestion, timeoutMs } from "./scope-question.ts";
import type { Gateway } from "../network/gateway.ts";
import type { Sessions } from "../project/sessions.ts";
import type { SpanRecord, Trace } from "../spans/trace.ts";
import type { ScopeGrant, ScopeTokens } from "./tokens.ts";
import { eventSpan } from "../spans/event-span.ts";
import { redact } from "../secrets/redact.ts";

/** Dependencies on the broker. */
export type ScopeNeeds = QuestionNeeds & {
  readonly approvals: Approvals;
  readonly around: Surroundings;
  readonly gateway: Pick<Gateway, "reach">;
  readonly scopeTokens: ScopeTokens;
  readonly sessions: Sessions;
  readonly trace: Pick<Trace, "event">;
};

/** A token expires after at most an hour, whatever `approval.timeout_secs` says. */
const MAX_TOKEN_MS = 3_600_000;

type Named = NamedScope | NetScope;

/** Returns a token, or a refusal. `signal` aborts when nobody awaits the answer. */
export async function requestScopes(
  broker: ScopeNeeds,
  agent: string,
  request: RequestScopesRequest,
  signal: AbortSignal,
): Promise<RequestScopesReply | Refusal> {
  const call = prepareCall(broker, agent, request);
  if (isRefusal(call)) return call;

  const named = namedScopes(broker, call);
  if (isRefusal(named)) return recordRefusal(broker, call, named);
  const rules = await netRulesOf(broker, call, named);
  const scopes = placedScopes(broker, call, named, rules);
  if (isRefusal(scopes)) return recordRefusal(broker, call, scopes);

  const missing = scopes.filter((scope) => !isGiven(scope, specOf(broker, call), rules));
  if (missing.length === 0) return issue(broker, call, scopes, undefined);

  const silent = silentPolicy(call.ground.effective);
  if (silent !== undefined) return recordRefusal(broker, call, nobodyMayBeAsked(silent, missing));

  const ask = () => scopeQuestion(broker, call, missing);
  const granted = await askPerson(broker.approvals, ask, request.wait_ms ?? 0, signal);
  if (isRefusal(granted)) return recordRefusal(broker, call, granted);
  return issue(broker, call, scopes, granted);
}

function prepareCall(broker: ScopeNeeds, agent: string, request: RequestScopesRequest): ScopeCall | Refusal {
  const place = placeOf(broker, request.cwd);
  if (isRefusal(place)) return place;
  const ground = groundOf(broker, agent, place, request.profile);
  if (isRefusal(ground)) return ground;
  const session = broker.sessions.of(agent, place.project);
  return { span: newId("spn"), agent, request, place, session, ground };
}

/** Returns the network rules, computed only for network scopes, because presets ask tools of the host. */
async function netRulesOf(
  broker: ScopeNeeds,
  { place, ground: { effective } }: ScopeCall,
  named: readonly Named[],
): Promise<NetRules> {
  if (named.every(({ kind }) => kind !== "net")) return netRules([]);
  return (await broker.gateway.reach(effective, place.project)).all;
}

function placedScopes(
  broker: ScopeNeeds,
  call: ScopeCall,
  named: readonly Named[],
  rules: NetRules,
): readonly Scope[] | Refusal {
  const placed = placeAll(named);
  if (isRefusal(placed)) return placed;
  const spec = specOf(broker, call);
  const places = deniedPlaces(spec.files);
  for (const scope of placed) {
    const never =
      scope.kind === "net"
        ? netNeverGranted(scope, rules)
        : neverGranted(scope, spec, places, broker.projectRules());
    if (never !== undefined) return never;
  }
  return placed;
}

function namedScopes(broker: ScopeNeeds, { request, place }: ScopeCall): readonly Named[] | Refusal {
  const named: Named[] = [];
  for (const text of new Set(request.scopes)) {
    const scope = readScope(text, { project: place.project, home: broker.around.home });
    if (isRefusal(scope)) return scope;
    named.push(scope);
  }
  return named;
}

function specOf(broker: ScopeNeeds, { ground: { effective, site } }: ScopeCall): SpecOfFiles {
  return worldSpec(effective.policies, site, { kind: "direct" }, broker.around);
}

/** Whether the policy already gives the scope; denied scopes were refused before. */
function isGiven(scope: Scope, { files }: SpecOfFiles, rules: NetRules): boolean {
  if (scope.kind === "net") return isNetGiven(scope, rules);
  const lists = scope.kind === "fs.write" ? files.write : [...files.read, ...files.write];
  return covers(lists, scopeEntry(scope));
}

function issue(
  broker: ScopeNeeds,
  call: ScopeCall,
  scopes: readonly Scope[],
  granted: Granted | undefined,
): RequestScopesReply | Refusal {
  const forMs = Math.min(timeoutMs(call), MAX_TOKEN_MS);
  const grant = grantOf(call, scopes, granted);
  try {
    broker.trace.event(issuedSpan(call, grant));
  } catch (error) {
    return cannotRecord("No token was issued", error);
  }
  return {
    scope_token: broker.scopeTokens.issue(grant, forMs),
    scopes: scopes.map(scopeText),
    expires_at: new Date(Date.now() + forMs).toISOString(),
  };
}

function grantOf(
  { agent, place, ground: { effective } }: ScopeCall,
  scopes: readonly Scope[],
  granted: Granted | undefined,
): ScopeGrant {
  return {
    agent,
    project: place.project,
    identity: place.identity,
    policyHash: effective.hash,
    policies: effective.policies.map(({ source, hash }) => ({ source, hash })),
    scopes,
    how: granted === undefined ? "policy" : granted.how === "once" ? "once" : "session",
    approval: granted?.approval ?? null,
  };
}

function nobodyMayBeAsked(policy: string, missing: readonly Scope[]): Refusal {
  const texts = missing.map((scope) => `'${scopeText(scope)}'`).join(", ");
  return refusal(
    "scope_denied",
    `Cannot grant ${texts}: policy '${policy}' does not allow it, and nobody can be asked (approval.interactive is false)`,
    "Do the task without it, or ask the operator to change the policy",
    { policy_id: policy },
  );
}

/** Records a refusal of a valid request; unreadable requests leave no span. */
function recordRefusal(broker: ScopeNeeds, call: ScopeCall, error: Refusal): Refusal {
  if (error.code === "invalid_request") return error;
  try {
    broker.trace.event(refusedScopesSpan(call, error));
  } catch (fault) {
    return cannotRecord("No token was issued", fault);
  }
  return { ...error, span_id: call.span };
}

/**
 * Makes the trace line of an issued token, without the token or any hint of its value. Lines of the question come from
 * `../approvals/`.
 */
function issuedSpan(call: ScopeCall, { scopes, approval }: ScopeGrant): SpanRecord {
  const subject = redact(scopes.map(scopeText).join(" "), "scopes").text;
  return {
    ...common(call),
    event_type: "approval",
    ...(approval === null ? {} : { approval_id: approval }),
    approval: { kind: "scopes", event: "issued", by: null, subject },
  };
}

/** Makes the only line of a refused request. */
function refusedScopesSpan(call: ScopeCall, error: Refusal): SpanRecord {
  const { code, message, hint, approval_id } = error;
  return {
    ...common(call),
    event_type: "violation",
    outcome: "refused",
    code,
    message: redact(message, "message").text,
    hint,
    ...(approval_id === undefined ? {} : { approval_id }),
  };
}

function common({ span, agent, place, session, ground: { effective } }: ScopeCall): SpanRecord {
  return eventSpan({
    event_type: "approval",
    session_id: session.id,
    span_id: span,
    policy_id: effective.id,
    policy_hash: effective.hash,
    policy_commit: effective.commit,
    agent_id: agent,
    cwd: place.cwd,
    scopes_used: [],
  });
}
