import type { IncomingMessage, ServerResponse } from "node:http";
import { report } from "../../broker/shims/report.ts";
import type { ReportRequest } from "../../schemas/generated/types.ts";
import { validateReportRequest } from "../../schemas/generated/validators.js";
import { sendJson, sendRefusal } from "./answer.ts";
import { whenClientLeaves } from "./client-leaves.ts";
import type { Context } from "./context.ts";
import { validRequest } from "./valid-request.ts";

/** `POST /v1/report`: a program behind a shim is about to start, or has ended. */
export async function handleReport(
  context: Context,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const body = await validRequest<ReportRequest>(request, context.caller, validateReportRequest);
  if ("code" in body) return sendRefusal(response, body);
  const { valid } = body;
  const reply = await report(context.broker, valid.agent_id, valid, whenClientLeaves(request, response));
  if ("code" in reply) return sendRefusal(response, reply);
  sendJson(response, 200, reply);
}
