/** The lines that an edited policy leaves in the trace. */
import type { CompiledPolicy, PolicyProblem } from "../policy/index.ts";
import { eventSpan } from "./event-span.ts";
import type { SpanRecord } from "./trace.ts";

/** A policy's file was read again. `policy` is absent when it does not load: then the last good one stays. */
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
