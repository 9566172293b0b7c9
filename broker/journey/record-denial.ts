import type { CheckFilesRequest, CheckReply, ExecuteRequest } from "../../schemas/generated/types.ts";
import type { Broker } from "../broker.ts";
import { because, isRefusal } from "../model/refusal.ts";
import { NO_PROJECT } from "../project/projects.ts";
import { placeOnHost } from "../project/request.ts";
import { redact, redactRule, redactWords, secretsIn } from "../secrets/redact.ts";
import { eventSpan } from "../spans/event-span.ts";
import type { SpanRecord } from "../spans/trace.ts";

/**
 * Writes a violation line for a denied check whose caller asked for it: an agent's hook, behind which no call follows a denial. The
 * verdict stays a denial when the line cannot be written.
 */
export function recordDenial(
  broker: Broker,
  agent: string,
  request: ExecuteRequest | CheckFilesRequest,
  reply: CheckReply,
): void {
  if (request.record !== true || reply.decision.verdict !== "deny") return;
  try {
    broker.trace.event(deniedSpan(broker, agent, request, reply));
  } catch (error) {
    broker.onFault("Cannot record a denial", error);
  }
}

function deniedSpan(
  broker: Broker,
  agent: string,
  request: ExecuteRequest | CheckFilesRequest,
  { decision: { verdict, mode, rule }, policy_id: policy, policy_hash: hash }: CheckReply,
): SpanRecord {
  const known = secretsIn("files" in request ? {} : (request.env ?? {}));
  const what = "files" in request ? "file" : "command";
  return eventSpan({
    event_type: "violation",
    agent_id: agent,
    ...whereOf(broker, agent, request),
    policy_id: policy,
    policy_hash: hash,
    ...aboutOf(request, rule?.fragment ?? ""),
    exit: 126,
    outcome: "refused",
    decision: { verdict, mode, rule: redactRule(rule, known) },
    code: "policy_denied",
    message: redact(`Policy '${policy}' denies this ${what}${because(rule)}`, "message", known).text,
  });
}

function whereOf(
  broker: Broker,
  agent: string,
  { cwd, session_key: key }: ExecuteRequest | CheckFilesRequest,
): Pick<SpanRecord, "cwd" | "session_id" | "parent_span"> {
  const place = placeOnHost(broker, cwd);
  const parent_span = broker.agentSessions.of(agent, key)?.parent ?? null;
  if (isRefusal(place)) return { cwd: null, session_id: null, parent_span };
  const hasProject = place.project !== NO_PROJECT;
  return {
    cwd: place.cwd,
    parent_span,
    session_id: hasProject ? broker.sessions.of(agent, place.project, key).id : null,
  };
}

function aboutOf(
  request: ExecuteRequest | CheckFilesRequest,
  fragment: string,
): Pick<SpanRecord, "cmd" | "redacted"> & Partial<SpanRecord> {
  if ("files" in request) {
    const { text, redacted } = redact(fragment, "violation");
    return { cmd: null, redacted: [...redacted], violation: { kind: "file", subject: text } };
  }
  const { cmd = "", argv, env = {} } = request;
  const known = secretsIn(env);
  const { text, redacted } = argv === undefined ? redact(cmd, "cmd", known) : redactWords(argv, "cmd", known);
  return { cmd: text, redacted: [...redacted] };
}
