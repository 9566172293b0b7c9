import type { Request, Response } from "express";
import { handleApprovals, handleDecision, handlePreview } from "./approvals.ts";
import { handleBudget, handleBudgetReset, handleBudgets } from "./budgets.ts";
import type { Context } from "./context.ts";
import { handleChange, handleDiff, handleHeld } from "./held.ts";
import { handleHealth } from "./health.ts";
import { handlePolicy, handleReload } from "./policy.ts";
import { handleReplay } from "./replay.ts";
import { handleRequestScopes } from "./scopes.ts";
import { handleSpans } from "./spans.ts";
import { handleTrace, handleTraceTree } from "./trace.ts";
import { handlePublish, handleRestart, handleWarm } from "./worlds.ts";

export type Route = {
  /** Whose sockets have it; on the others it is as unknown as a path that never was. */
  readonly for: "everybody" | "operator";
  readonly method: "get" | "post" | "delete";
  readonly path: string;
  readonly handle: (context: Context, request: Request, response: Response) => Promise<void> | void;
};

/** What Express answers. `execute` and `check` are in `listener.ts`. */
export const ROUTES: readonly Route[] = [
  { for: "everybody", method: "get", path: "/v1/trace/:span_id", handle: handleTrace },
  { for: "everybody", method: "get", path: "/v1/trace/:span_id/tree", handle: handleTraceTree },
  { for: "everybody", method: "get", path: "/v1/spans", handle: handleSpans },
  { for: "everybody", method: "get", path: "/v1/health", handle: handleHealth },
  { for: "everybody", method: "post", path: "/v1/request_scopes", handle: handleRequestScopes },
  { for: "everybody", method: "get", path: "/v1/held", handle: handleHeld },
  { for: "everybody", method: "get", path: "/v1/diff/:span_id", handle: handleDiff },
  { for: "everybody", method: "post", path: "/v1/apply/:span_id", handle: handleChange("apply") },
  { for: "everybody", method: "post", path: "/v1/discard/:span_id", handle: handleChange("discard") },
  { for: "everybody", method: "post", path: "/v1/undo/:span_id", handle: handleChange("undo") },
  { for: "everybody", method: "post", path: "/v1/replay/:span_id", handle: handleReplay },
  { for: "operator", method: "get", path: "/v1/approvals", handle: handleApprovals },
  { for: "operator", method: "post", path: "/v1/approvals/:approval_id", handle: handleDecision },
  { for: "operator", method: "post", path: "/v1/approvals/:approval_id/preview", handle: handlePreview },
  { for: "operator", method: "get", path: "/v1/policy/:name", handle: handlePolicy },
  { for: "operator", method: "post", path: "/v1/policy/reload", handle: handleReload },
  { for: "operator", method: "post", path: "/v1/world/warm", handle: handleWarm },
  { for: "operator", method: "post", path: "/v1/world/restart", handle: handleRestart },
  { for: "operator", method: "post", path: "/v1/world/publish", handle: handlePublish },
  { for: "operator", method: "get", path: "/v1/budgets", handle: handleBudgets },
  { for: "operator", method: "get", path: "/v1/budgets/:agent_id", handle: handleBudget },
  { for: "operator", method: "delete", path: "/v1/budgets/:agent_id", handle: handleBudgetReset },
];
