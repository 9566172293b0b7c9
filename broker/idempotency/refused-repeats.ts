/** Why a call with a key that was used before gets no reply. In each case nothing ran. */
import { type Refusal, refusal } from "../model/refusal.ts";
import type { KnownCall } from "./known-calls.ts";

/** The first call, with `span`, asked for something else. */
export function conflict(span: string | undefined): Refusal {
  return refusal(
    "idempotency_conflict",
    "The idempotency_key stands for another call of this agent, with another body",
    "Send a new key for a new command; a retry has to repeat the first call in every field",
    span === undefined ? {} : { span_id: span },
  );
}

/** It began, and what it answered is not there any more. Running it again could do its work twice. */
export function withoutReply({ span, state }: KnownCall): Refusal {
  const why =
    state === "ran"
      ? "it ran, and its reply was not kept"
      : "it was lost with the broker or failed inside it, and may have run in part";
  return refusal(
    "idempotency_conflict",
    `Cannot repeat the reply of the first call with this idempotency_key: ${why}`,
    `Look at GET /v1/trace/${span} and at the project; send a new key to run the command again`,
    { span_id: span },
  );
}

export function policyMoved(): Refusal {
  return refusal(
    "policy_changed",
    "The first call with this idempotency_key still runs, under a policy that has changed since",
    "Wait until it has ended; then the key is free, and the command runs under the policy of that time",
    { retry_after_ms: 1000 },
  );
}

export function crowded(most: number): Refusal {
  return refusal(
    "busy",
    `${most} keys of the last 24 hours are known already, and a forgotten one could let a command run twice`,
    "Leave 'idempotency_key' out where a second run does no harm",
    { retry_after_ms: 60_000 },
  );
}
