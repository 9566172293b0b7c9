import type { ExecuteReply, ExecuteTextReply } from "../../schemas/generated/types.ts";

/**
 * Makes the reply for `format: "text"`: the fields useful to an agent, without those equal in every reply. Invalid UTF-8 in the
 * outputs becomes U+FFFD.
 */
export function textReply(reply: ExecuteReply): ExecuteTextReply {
  const { span_id, decision, exit, signal, timed_out, duration_ms, truncated, notices, hint } = reply;
  return {
    span_id,
    verdict: decision.verdict,
    exit,
    signal,
    timed_out,
    duration_ms,
    stdout: textOf(reply.stdout_b64),
    stderr: textOf(reply.stderr_b64),
    truncated,
    notices,
    hint,
  };
}

function textOf(base64: string): string {
  return Buffer.from(base64, "base64").toString("utf8");
}
