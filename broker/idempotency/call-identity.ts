import { createHash } from "node:crypto";
import type { ExecuteRequest, SpanIdempotency } from "../../schemas/generated/types.ts";

/**
 * What tells a call from another one: its agent's key, and everything that it asks for. Both are hashes, because a key
 * may be anything, also something that nobody should read in a trace. Undefined for a call without a key.
 *
 * @param cwd where it works; a call without one works where the broker was started, and that may be another folder later.
 */
export function callIdentity(
  agent: string,
  request: ExecuteRequest,
  cwd: string,
): SpanIdempotency | undefined {
  if (request.idempotency_key === undefined) return undefined;
  return {
    key: hashOf([agent, request.idempotency_key]),
    body: hashOf([sorted({ ...request }), cwd]),
  };
}

/** The same document whatever order its fields came in. */
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
