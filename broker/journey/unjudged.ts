import { isRefusal, type Refusal } from "../model/refusal.ts";
import type { ExecuteRequest } from "../../schemas/generated/types.ts";
import type { Broker } from "../broker.ts";
import { cannotRecord } from "../model/refusal.ts";
import { withoutWorldVariables } from "../settings/environment.ts";
import type { How } from "../project/request.ts";
import { eventSpan } from "../spans/event-span.ts";
import { redact, redactWords, secretsIn } from "../secrets/redact.ts";
import type { SpanRecord } from "../spans/trace.ts";

/** A call refused before any policy could judge it. */
export type UnjudgedCall = {
  readonly agent: string;
  readonly request: ExecuteRequest;
  readonly how: How;
  readonly component: SpanRecord["component"];
};

/** Writes a violation line for a call denied because its policy has never loaded; returns other refusals unchanged. */
export function recordUnjudged(broker: Broker, call: UnjudgedCall, error: Refusal): Refusal {
  if (error.code !== "policy_denied") return error;
  try {
    const line = unjudgedSpan(broker, call, error);
    broker.trace.event(line);
    return { ...error, span_id: line.span_id };
  } catch (fault) {
    return cannotRecord("Nothing ran", fault);
  }
}

function unjudgedSpan(
  broker: Broker,
  { agent, request: asked, how, component }: UnjudgedCall,
  { code, message, hint, exit, policy_id }: Refusal,
): SpanRecord {
  const { argv, cmd = "", env = {}, parent_span: named, session_key: key } = withoutWorldVariables(asked);
  const parent = named ?? broker.agentSessions.of(agent, key)?.parent ?? undefined;
  const known = secretsIn(env);
  const { text, redacted } = argv === undefined ? redact(cmd, "cmd", known) : redactWords(argv, "cmd", known);
  const place = how.placeOf(broker, asked.cwd);
  const where = isRefusal(place)
    ? {}
    : { cwd: place.cwd, session_id: broker.sessions.of(agent, place.project, asked.session_key).id };
  return eventSpan({
    event_type: "violation",
    component,
    agent_id: agent,
    ...where,
    parent_span: parent === undefined ? null : redact(parent, "parent_span").text,
    policy_id: policy_id ?? null,
    cmd: text,
    redacted: [...redacted],
    exit: exit ?? null,
    outcome: "refused",
    decision: { verdict: "deny", mode: "enforce", rule: null },
    code,
    message,
    hint,
  });
}
