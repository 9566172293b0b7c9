/** The journey of a call for scopes: what is asked for, what no grant gives, what a person says, and the token. */
import type { RequestScopesReply, RequestScopesRequest } from "../../schemas/generated/types.ts";
import type { Granted } from "../approvals/question.ts";
import { askPerson } from "../approvals/ask-person.ts";
import type { Broker } from "../broker.ts";
import { newId } from "../ids.ts";
import { groundOf } from "../judge.ts";
import { type Refusal, refusal } from "../refusal.ts";
import { placeOf } from "../request.ts";
import { covers, worldSpec } from "../world-spec.ts";
import type { WorldSpec } from "../../world/backend.ts";
import { deniedPlaces } from "./denied-places.ts";
import { type PlacedScope, scopeEntry, scopeText } from "./place-scope.ts";
import { type NamedScope, readScope } from "./read-scope.ts";
import { neverGranted } from "./refuse-scope.ts";
import { placeAll, type ScopeCall } from "./scope-call.ts";
import { scopeQuestion, timeoutMs } from "./scope-question.ts";
import { issuedSpan, refusedScopesSpan } from "./scope-spans.ts";
import type { ScopeGrant } from "./tokens.ts";

/** However long a policy lets people take, a token is worth nothing after an hour. */
const MAX_TOKEN_MS = 3_600_000;

/** A token for scopes, or why there is none. `signal` aborts when nobody waits for the answer any more. */
export async function requestScopes(
  broker: Broker,
  agent: string,
  request: RequestScopesRequest,
  signal: AbortSignal,
): Promise<RequestScopesReply | Refusal> {
  const call = prepareCall(broker, agent, request);
  if ("code" in call) return call;

  const scopes = placedScopes(broker, call);
  if ("code" in scopes) return recordRefusal(broker, call, scopes);

  const missing = scopes.filter((scope) => !isGiven(scope, specOf(broker, call)));
  if (missing.length === 0) return issue(broker, call, scopes, undefined);

  const silent = silentPolicy(call);
  if (silent !== undefined) return recordRefusal(broker, call, nobodyMayBeAsked(silent, missing));

  const ask = () => scopeQuestion(broker, call, missing);
  const granted = await askPerson(broker, ask, request.wait_ms ?? 0, signal);
  if ("code" in granted) return recordRefusal(broker, call, granted);
  return issue(broker, call, scopes, granted);
}

function prepareCall(broker: Broker, agent: string, request: RequestScopesRequest): ScopeCall | Refusal {
  const place = placeOf(broker, request.cwd);
  if ("code" in place) return place;
  const ground = groundOf(broker, agent, place, request.profile);
  if ("code" in ground) return ground;
  const session = broker.sessions.of(agent, place.project);
  return { span: newId("spn"), agent, request, place, session, ground };
}

function placedScopes(broker: Broker, call: ScopeCall): readonly PlacedScope[] | Refusal {
  const named = namedScopes(broker, call);
  if ("code" in named) return named;
  const placed = placeAll(named);
  if ("code" in placed) return placed;
  const spec = specOf(broker, call);
  const places = deniedPlaces(spec.files);
  for (const scope of placed) {
    const never = neverGranted(scope, spec, places, broker.projectRules());
    if (never !== undefined) return never;
  }
  return placed;
}

function namedScopes(broker: Broker, { request, place }: ScopeCall): readonly NamedScope[] | Refusal {
  const named: NamedScope[] = [];
  for (const text of new Set(request.scopes)) {
    const scope = readScope(text, { project: place.project, home: broker.around.home });
    if ("code" in scope) return scope;
    named.push(scope);
  }
  return named;
}

function specOf(broker: Broker, { ground: { effective, site } }: ScopeCall): WorldSpec {
  return worldSpec(effective.policies, site, { kind: "direct" }, broker.around);
}

/** Whether the policy gives it already; what is denied was refused before. */
function isGiven(scope: PlacedScope, { files }: WorldSpec): boolean {
  const lists = scope.kind === "fs.write" ? files.write : [...files.read, ...files.write];
  return covers(lists, scopeEntry(scope));
}

function issue(
  broker: Broker,
  call: ScopeCall,
  scopes: readonly PlacedScope[],
  granted: Granted | undefined,
): RequestScopesReply {
  const forMs = Math.min(timeoutMs(call), MAX_TOKEN_MS);
  const grant = grantOf(call, scopes, granted);
  const token = broker.scopeTokens.issue(grant, forMs);
  broker.trace.event(issuedSpan(call, grant));
  return {
    scope_token: token,
    scopes: scopes.map(scopeText),
    expires_at: new Date(Date.now() + forMs).toISOString(),
  };
}

function grantOf(
  { agent, place, ground: { effective } }: ScopeCall,
  scopes: readonly PlacedScope[],
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

function silentPolicy({ ground: { effective } }: ScopeCall): string | undefined {
  return effective.policies.find(({ document }) => document.approval?.interactive === false)?.id;
}

function nobodyMayBeAsked(policy: string, missing: readonly PlacedScope[]): Refusal {
  const texts = missing.map((scope) => `'${scopeText(scope)}'`).join(", ");
  return refusal(
    "scope_denied",
    `Cannot grant ${texts}: policy '${policy}' does not give it and lets nobody be asked (approval.interactive is false)`,
    "Do the task without it, or ask the operator to change the policy",
    { policy_id: policy },
  );
}

/** A call that could have been granted and was refused leaves a span; one that cannot be read leaves none. */
function recordRefusal(broker: Broker, call: ScopeCall, error: Refusal): Refusal {
  if (error.code === "invalid_request") return error;
  broker.trace.event(refusedScopesSpan(call, error));
  return { ...error, span_id: call.span };
}
