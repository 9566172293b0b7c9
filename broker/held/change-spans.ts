/** Trace lines of apply, discard and undo: a line before the first change on disk, and a line at the end. */
import type { FsDiff } from "../../schemas/generated/types.ts";
import { newId } from "../model/ids.ts";
import type { Refusal } from "../model/refusal.ts";
import { eventSpan } from "../spans/event-span.ts";
import { redact } from "../secrets/redact.ts";
import type { SpanRecord } from "../spans/trace.ts";
import { changePath } from "./change-path.ts";

export type Action = "apply" | "discard" | "undo";

/** The caller: a person on control.sock, an agent permitted by its policy, or `changes.auto_apply`. */
export type Asker = "operator" | "agent" | "policy";

/** Bound on named paths; the total is recorded separately. */
const MAX_NAMED = 100;

export function changeStarted(
  span: SpanRecord,
  action: Action,
  by: Asker,
  paths: readonly string[] | null,
): SpanRecord {
  const named = paths?.slice(0, MAX_NAMED).map((path) => redact(changePath(path), "paths").text) ?? null;
  return eventSpan({
    event_type: "world",
    span_id: newId("spn"),
    parent_span: span.span_id,
    session_id: span.session_id,
    agent_id: span.agent_id,
    cwd: span.overlay?.project ?? span.cwd,
    policy_id: span.policy_id,
    policy_hash: span.policy_hash,
    held_changes: { action, by, paths: named, done: null, left: null },
  });
}

/** `began`: the value of `performance.now()` at the start. */
export function changeDone(
  started: SpanRecord,
  began: number,
  counts: { readonly done: number; readonly left: number },
  changes: FsDiff,
): SpanRecord {
  const event = started.held_changes;
  return {
    ...ended(started, began),
    outcome: "ended",
    fs_diff: changes,
    ...(event === undefined ? {} : { held_changes: { ...event, ...counts } }),
  };
}

export function changeRefused(started: SpanRecord, began: number, error: Refusal): SpanRecord {
  const { code, hint } = error;
  const outcome = code === "busy" || code === "internal" ? "failed" : "refused";
  return { ...ended(started, began), outcome, code, hint, message: redact(error.message, "message").text };
}

/** Builds the only line of a forbidden call. */
export function changeDenied(
  span: SpanRecord,
  action: Action,
  by: Asker,
  paths: readonly string[] | null,
  error: Refusal,
): SpanRecord {
  const { code, hint, exit = null } = error;
  const message = redact(error.message, "message").text;
  const line = changeStarted(span, action, by, paths);
  return { ...line, event_type: "violation", outcome: "refused", exit, code, message, hint };
}

function ended(started: SpanRecord, began: number): SpanRecord {
  const duration_ms = Math.round((performance.now() - began) * 1000) / 1000;
  return { ...started, ts: new Date().toISOString(), duration_ms };
}
