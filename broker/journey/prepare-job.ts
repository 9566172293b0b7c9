import { isRefusal, quoted, type Refusal, refusal } from "../model/refusal.ts";
import type { ExecuteRequest } from "../../schemas/generated/types.ts";
import type { Broker } from "../broker.ts";
import { environmentFor } from "./caller-shell.ts";
import { withoutWorldVariables } from "../settings/environment.ts";
import { callIdentity } from "../idempotency/call-identity.ts";
import { newId } from "../model/ids.ts";
import type { Job } from "../model/job.ts";
import { judge } from "../policies/judge.ts";
import type { Place, Session } from "../model/place.ts";
import { type How, IN_WORLD } from "../project/request.ts";
import { begin, twoSessions } from "./resume.ts";
import { usableScopes } from "../scopes/use-scopes.ts";
import { seccompMode } from "../worlds/world-spec.ts";

/**
 * Turns a valid request into a job, or refuses with the first problem. `How` says where the command will run; default: in a
 * world.
 */
export function prepareJob(
  broker: Broker,
  agent: string,
  asked: ExecuteRequest,
  { argvOf, placeOf, asker, call, live, judgedAs, hasOwnHome, peeks, decide }: How = IN_WORLD,
): Job | Refusal {
  const sent = withoutWorldVariables(asked);
  if (sent.no_time_limit === true && sent.timeout_ms !== undefined) return twoLimits();
  const twice = twoSessions(sent);
  if (twice !== undefined) return twice;
  const argv = argvOf(sent);
  if (isRefusal(argv)) return argv;
  const called = placeOf(broker, sent.cwd);
  if (isRefusal(called)) return called;
  const session =
    peeks === true && sent.session_id === undefined
      ? knownSession(broker, agent, called, sent)
      : sessionOf(broker, agent, called, sent);
  if (isRefusal(session)) return session;
  // Without the event of a beginning, a session begins with its first command; so does an agent that runs inside.
  const isFirst =
    sent.session_key !== undefined && broker.agentSessions.of(agent, sent.session_key) === undefined;
  if (peeks !== true && (isFirst || hasOwnHome === true)) broker.startFolders.note(called.cwd);
  const placed = peeks === true ? sent : inAgentSession(broker, agent, sent, session);
  const begun = begin(broker, agent, placed, called, session, decide !== undefined);
  if (isRefusal(begun)) return begun;
  const { request, place, told, effective, site, calledUnder } = begun;
  if (request.expect_policy !== undefined && request.expect_policy !== effective.hash) {
    return policyChanged(request.expect_policy, effective.hash, effective.id);
  }
  const token = request.scope_token;
  const scopes =
    token === undefined ? null : usableScopes(broker.scopeTokens, agent, place, effective, token);
  const holds = scopes === null || isRefusal(scopes) ? effective : scopes.effective;
  const environment = environmentFor(broker, effective, request, place, asker);
  const decision =
    decide === undefined
      ? judge(broker, judgedAs?.(request) ?? request, place, holds, environment, hasOwnHome)
      : decide({ place, site, effective: holds, isGranted: holds !== effective });
  if (isRefusal(decision)) return decision;
  return {
    span: newId("spn"),
    ...(call === undefined ? {} : { call }),
    ...(live === undefined ? {} : { live }),
    ...(hasOwnHome === true ? { ownHome: request.profile ?? site.profile ?? effective.id } : {}),
    agent,
    request,
    argv,
    place,
    called,
    sent: sent.env,
    told,
    session,
    effective,
    site,
    decision,
    ...(decide === undefined ? {} : { isFileCall: true }),
    scopes,
    approval: null,
    environment,
    projectCommit: broker.gitHeads.of(place.project),
    dirtyHash: broker.dirtyFiles.of(place.project),
    idempotency: callIdentity(agent, sent, called.cwd, calledUnder),
    worldImage: broker.worldImages[seccompMode(effective.policies)],
  };
}

function sessionOf(
  broker: Broker,
  agent: string,
  place: Place,
  { session_id: wanted, session_key: key }: ExecuteRequest,
): Session | Refusal {
  if (wanted === undefined) return broker.sessions.of(agent, place.project, key);
  const session = broker.sessions.find(wanted);
  if (session?.agent === agent && session.project === place.project) return session;
  return refusal(
    "not_found",
    `Unknown session ${quoted(wanted)} for this agent in ${quoted(place.project)}`,
    "Leave 'session_id' out, or send one from a reply for this project",
  );
}

/** The session, or one that no answer of a person belongs to yet. */
function knownSession(
  broker: Broker,
  agent: string,
  place: Place,
  { session_key: key }: ExecuteRequest,
): Session {
  return broker.sessions.known(agent, place.project, key) ?? { id: "", agent, project: place.project };
}

/** Places a call under the last prompt of its agent's session, unless it names a parent. */
function inAgentSession(
  { agentSessions }: Broker,
  agent: string,
  sent: ExecuteRequest,
  { id }: Session,
): ExecuteRequest {
  const { session_key: key, parent_span: named } = sent;
  if (key === undefined) return sent;
  agentSessions.note(agent, key, { event: undefined, span: null, at: new Date().toISOString(), id });
  const parent = named ?? agentSessions.of(agent, key)?.parent ?? undefined;
  return parent === undefined ? sent : { ...sent, parent_span: parent };
}

function twoLimits(): Refusal {
  return refusal(
    "invalid_request",
    "no_time_limit: must not be true together with 'timeout_ms', received both",
    "Send one of the two, or neither",
  );
}

function policyChanged(wanted: string, now: string, id: string): Refusal {
  return refusal(
    "policy_changed",
    `expect_policy: the policy in force is ${now}, received ${quoted(wanted)}`,
    "Read the policy again, then send its hash",
    { policy_id: id },
  );
}
