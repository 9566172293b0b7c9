import { newId } from "../model/ids.ts";
import type { SpanRecord } from "./trace.ts";
import type { CompiledPolicy, PolicyProblem } from "../policy/index.ts";

/** Builds the line of an event that belongs to no command; unknown fields are null. */
export function eventSpan(facts: Pick<SpanRecord, "event_type"> & Partial<SpanRecord>): SpanRecord {
  return {
    ts: new Date().toISOString(),
    session_id: null,
    span_id: newId("spn"),
    parent_span: null,
    component: "broker",
    world_id: null,
    policy_id: null,
    policy_hash: null,
    policy_commit: null,
    agent_id: null,
    cwd: null,
    cmd: null,
    exit: null,
    duration_ms: null,
    outcome: null,
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
    ...facts,
  };
}

/** Lines about policy reloads. */

/** Builds the line of a reloaded policy file. `policy` is absent for a file that does not load: the last good version stays. */
export function reloadSpan(
  name: string,
  policy: CompiledPolicy | undefined,
  problems: readonly PolicyProblem[],
): SpanRecord {
  return eventSpan({
    event_type: "policy_reload",
    policy_id: policy?.id ?? name,
    policy_hash: policy?.hash ?? null,
    outcome: policy === undefined ? "failed" : "ended",
    ...(problems.length === 0 ? {} : { message: problems.map(({ text }) => text).join("; ") }),
  });
}
