import { createHash } from "node:crypto";
import type { ExecuteRequest, SpanIdempotency } from "../../schemas/generated/types.ts";

/**
 * Identifies a keyed call by the agent's key and by the whole request. Both are hashed, because a key may be any text, including
 * a secret that must not appear in a trace. Undefined for a call without a key.
 *
 * @param cwd the call's folder; a call without `cwd` works in the broker's start folder, which may differ later.
 * @param policy hash of the policies in force there; undefined: the job's own. The first run of a call with a `session_key` may move
 *   the session below another profile, where its retry must still be known.
 */
export function callIdentity(
  agent: string,
  request: ExecuteRequest,
  cwd: string,
  policy?: string,
): SpanIdempotency | undefined {
  if (request.idempotency_key === undefined) return undefined;
  return {
    key: hashOf([agent, request.idempotency_key]),
    body: hashOf([sorted({ ...request }), cwd]),
    ...(policy === undefined ? {} : { policy }),
  };
}

/** Sorts the fields, because their order does not matter. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.entries(value)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, each]) => [name, sorted(each)]);
}

function hashOf(parts: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}
