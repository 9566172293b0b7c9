import type { ErrorCode } from "../../broker/model/refusal.ts";

/** Error codes of the API: HTTP status, and the side that can mend the error. A test keeps the table of `api/README.md` equal. */
export const ERRORS: Readonly<
  Record<ErrorCode, { readonly status: number; readonly turn: "caller" | "policy" | "host" | "us" }>
> = {
  invalid_request: { status: 400, turn: "caller" },
  agent_id_required: { status: 400, turn: "caller" },
  cwd_required: { status: 400, turn: "caller" },
  unknown_profile: { status: 400, turn: "caller" },
  policy_denied: { status: 403, turn: "policy" },
  approval_required: { status: 403, turn: "policy" },
  approval_denied: { status: 403, turn: "policy" },
  scope_denied: { status: 403, turn: "policy" },
  project_not_allowed: { status: 403, turn: "caller" },
  not_found: { status: 404, turn: "caller" },
  policy_changed: { status: 409, turn: "caller" },
  idempotency_conflict: { status: 409, turn: "caller" },
  apply_conflict: { status: 409, turn: "caller" },
  not_replayable: { status: 409, turn: "caller" },
  too_large: { status: 413, turn: "caller" },
  budget_exceeded: { status: 429, turn: "policy" },
  isolation_unavailable: { status: 503, turn: "host" },
  busy: { status: 503, turn: "host" },
  internal: { status: 500, turn: "us" },
};
