/** The last lines of commands whose end nobody saw. */
import type { Span } from "../../schemas/generated/types.ts";
import { redact } from "../secrets/redact.ts";
import type { SpanRecord } from "./trace.ts";
import { closingType } from "./two-lines.ts";

/** Of a command that was open when its broker died. */
export function lostEnd({ seq: _seq, prev: _prev, hash: _hash, ...record }: Span): SpanRecord {
  return {
    ...record,
    ts: new Date().toISOString(),
    event_type: closingType(record),
    outcome: "lost",
    replayable: false,
    ...unseen(record),
  };
}

/** Of a command that broke for a reason that is a bug. */
export function failedEnd(started: SpanRecord, error: unknown): SpanRecord {
  const message = error instanceof Error ? error.message : String(error);
  return {
    ...started,
    ts: new Date().toISOString(),
    event_type: closingType(started),
    outcome: "failed",
    code: "internal",
    message: redact(message, "message").text,
    replayable: false,
    ...unseen(started),
  };
}

/** The most that it can have run is until now, or until its time was over. */
function unseen({ ts, timeout_ms: timeout, event_type: type }: SpanRecord): Pick<SpanRecord, "charged_ms"> {
  // Of a program nothing is charged: its command is.
  if (type === "exec") return {};
  const since = Math.max(0, Date.now() - Date.parse(ts));
  return { charged_ms: timeout === undefined ? since : Math.min(since, timeout) };
}
