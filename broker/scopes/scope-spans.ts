/** The lines that a call for scopes leaves in the trace; those of its question are in `../approvals/`. */
import type { Refusal } from "../model/refusal.ts";
import { eventSpan } from "../spans/event-span.ts";
import { redact } from "../secrets/redact.ts";
import type { SpanRecord } from "../spans/trace.ts";
import { scopeText } from "./place-scope.ts";
import type { ScopeCall } from "./scope-call.ts";
import type { ScopeGrant } from "./tokens.ts";

/** A token was given, and what for. The token is not in it, nor anything that it could be known by. */
export function issuedSpan(call: ScopeCall, { scopes, approval }: ScopeGrant): SpanRecord {
  const subject = redact(scopes.map(scopeText).join(" "), "scopes").text;
  return {
    ...common(call),
    event_type: "approval",
    ...(approval === null ? {} : { approval_id: approval }),
    approval: { kind: "scopes", event: "issued", by: null, subject },
  };
}

/** The one line of a call that was refused. */
export function refusedScopesSpan(call: ScopeCall, error: Refusal): SpanRecord {
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
