/** The table of calls: permitted callers, method, path, body, handler. */
import type { Request } from "express";
import type { IncomingMessage } from "node:http";
import { validateApprovalDecisionRequest } from "../../schemas/generated/validators/approval-decision-request.js";
import { validateChangesRequest } from "../../schemas/generated/validators/changes-request.js";
import { validateEventRequest } from "../../schemas/generated/validators/event-request.js";
import { validateExecuteRequest } from "../../schemas/generated/validators/execute-request.js";
import { validateFilesRequest } from "../../schemas/generated/validators/files-request.js";
import { validateReplayRequest } from "../../schemas/generated/validators/replay-request.js";
import { validateReportRequest } from "../../schemas/generated/validators/report-request.js";
import { validateRequestScopesRequest } from "../../schemas/generated/validators/request-scopes-request.js";
import { validateWorldPublishRequest } from "../../schemas/generated/validators/world-publish-request.js";
import { validateWorldRestartRequest } from "../../schemas/generated/validators/world-restart-request.js";
import { validateWorldWarmRequest } from "../../schemas/generated/validators/world-warm-request.js";
import { handleApprovals, handleDecision, handlePreview } from "./approvals.ts";
import { handleBudget, handleBudgetReset, handleBudgets } from "./budgets.ts";
import { type Answer, answering, type Handle, type Read } from "./call.ts";
import { handleCheck, readCheck } from "./check.ts";
import { handleEvent, handleSessions } from "./agent-events.ts";
import { handleExecute } from "./execute.ts";
import { handleFiles } from "./files.ts";
import { handleChange, handleDiff, handleHeld, ofSpan } from "./held.ts";
import { handleHealth } from "./health.ts";
import { handleMetrics } from "./metrics.ts";
import { handleOpenapi } from "./openapi.ts";
import { handlePolicy, handleReload } from "./policy.ts";
import { handleReplay } from "./replay.ts";
import { handleReport } from "./report.ts";
import { handleRequestScopes } from "./scopes.ts";
import { handleSpans } from "./spans.ts";
import { handleStream, readStream } from "./server-sent-events.ts";
import { handleTrace, handleTraceTree } from "./trace.ts";
import { type Refusal, refusal } from "../../broker/model/refusal.ts";
import { agentBody, body, NO_BODY, NO_FIELDS } from "./valid-request.ts";
import { handlePublish, handleRestart, handleWarm } from "./worlds.ts";

type Method = "get" | "post" | "delete";

export type Route = {
  /** Sockets with the route; on other sockets the path counts as unknown. */
  readonly for: "everybody" | "operator";
  readonly method: Method;
  readonly path: string;
} & (
  | { readonly direct: false; readonly answer: Answer<Request> }
  /** Answered before Express (`listener.ts`), for the exact path only. */
  | { readonly direct: true; readonly answer: Answer<IncomingMessage> }
);

const changes = body(validateChangesRequest);

export const ROUTES: readonly Route[] = [
  direct("/v1/execute", agentBody(validateExecuteRequest), handleExecute),
  direct("/v1/stream", readStream, handleStream),
  direct("/v1/check", readCheck, handleCheck),
  direct("/v1/files", agentBody(validateFilesRequest), handleFiles),
  direct("/v1/report", agentBody(validateReportRequest), handleReport),
  direct("/v1/events", agentBody(validateEventRequest), handleEvent),
  everybody("get", "/v1/stream", NO_BODY, needsWebSocket),
  everybody("get", "/v1/stream/:span_id", NO_BODY, needsWebSocket),
  everybody("get", "/v1/trace/:span_id", NO_BODY, handleTrace),
  everybody("get", "/v1/trace/:span_id/tree", NO_BODY, handleTraceTree),
  everybody("get", "/v1/spans", NO_BODY, handleSpans),
  everybody("get", "/v1/sessions", NO_BODY, handleSessions),
  everybody("get", "/v1/health", NO_BODY, handleHealth),
  everybody("get", "/metrics", NO_BODY, handleMetrics),
  everybody("get", "/v1/openapi.json", NO_BODY, handleOpenapi),
  everybody("post", "/v1/request_scopes", agentBody(validateRequestScopesRequest), handleRequestScopes),
  everybody("get", "/v1/held", NO_BODY, handleHeld),
  everybody("get", "/v1/diff/:span_id", ofSpan(NO_BODY), handleDiff),
  everybody("post", "/v1/apply/:span_id", ofSpan(changes), handleChange("apply")),
  everybody("post", "/v1/discard/:span_id", ofSpan(changes), handleChange("discard")),
  everybody("post", "/v1/undo/:span_id", ofSpan(changes), handleChange("undo")),
  everybody("post", "/v1/replay/:span_id", body(validateReplayRequest), handleReplay),
  operator("get", "/v1/approvals", NO_BODY, handleApprovals),
  operator("post", "/v1/approvals/:approval_id", body(validateApprovalDecisionRequest), handleDecision),
  operator("post", "/v1/approvals/:approval_id/preview", NO_FIELDS, handlePreview),
  operator("get", "/v1/policy/:name", NO_BODY, handlePolicy),
  operator("post", "/v1/policy/reload", NO_FIELDS, handleReload),
  operator("post", "/v1/world/warm", body(validateWorldWarmRequest), handleWarm),
  operator("post", "/v1/world/restart", body(validateWorldRestartRequest), handleRestart),
  operator("post", "/v1/world/publish", body(validateWorldPublishRequest), handlePublish),
  operator("get", "/v1/budgets", NO_BODY, handleBudgets),
  operator("get", "/v1/budgets/:agent_id", NO_BODY, handleBudget),
  operator("delete", "/v1/budgets/:agent_id", NO_BODY, handleBudgetReset),
];

/** Answers a plain GET: the WebSocket of these paths is made before a request is seen (`listener.ts`). */
function needsWebSocket(): Refusal {
  return refusal(
    "invalid_request",
    "This call is a WebSocket: the headers 'connection: upgrade' and 'upgrade: websocket' are missing",
    "Open a WebSocket, or use POST /v1/stream for server-sent events",
  );
}

function direct<Body>(path: string, read: Read<Body>, handle: Handle<Body, IncomingMessage>): Route {
  return { for: "everybody", method: "post", path, direct: true, answer: answering(read, handle) };
}

function everybody<Body>(
  method: Method,
  path: string,
  read: Read<Body, Request>,
  handle: Handle<Body, Request>,
): Route {
  return { for: "everybody", method, path, direct: false, answer: answering(read, handle) };
}

function operator<Body>(...row: Parameters<typeof everybody<Body>>): Route {
  return { ...everybody(...row), for: "operator" };
}
