/** The lines that an edited policy leaves in the trace. */
import { newId } from "../ids.ts";
import type { CompiledPolicy, PolicyProblem } from "../policy/index.ts";
import type { SpanRecord } from "./trace.ts";

/** A policy's file was read again. `policy` is absent when it does not load: then the last good one stays. */
export function reloadSpan(
  name: string,
  policy: CompiledPolicy | undefined,
  problems: readonly PolicyProblem[],
): SpanRecord {
  return {
    ts: new Date().toISOString(),
    event_type: "policy_reload",
    session_id: null,
    span_id: newId("spn"),
    parent_span: null,
    component: "broker",
    world_id: null,
    policy_id: policy?.id ?? name,
    policy_hash: policy?.hash ?? null,
    policy_commit: null,
    agent_id: null,
    cwd: null,
    cmd: null,
    exit: null,
    duration_ms: null,
    outcome: policy === undefined ? "failed" : "ended",
    ...(problems.length === 0 ? {} : { message: problems.map(({ text }) => text).join("; ") }),
    scopes_used: null,
    fs_diff: null,
    usage: null,
    isolation: null,
    decision: null,
    stdout_sha256: null,
    stderr_sha256: null,
    redacted: [],
    replayable: false,
    replay_context: null,
  };
}
