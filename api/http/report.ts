import { isRefusal } from "../../broker/model/refusal.ts";
import type { IncomingMessage, ServerResponse } from "node:http";
import { report } from "../../broker/journey/report.ts";
import { closeUnanswered } from "../../broker/journey/unanswered.ts";
import type { ReportRequest } from "../../schemas/generated/types.ts";
import { validateReportRequest } from "../../schemas/generated/validators.js";
import { sendJson, sendRefusal } from "./answer.ts";
import { whenClientLeaves } from "./client-leaves.ts";
import type { Context } from "./context.ts";
import { UnreadAnswers } from "./unread-answers.ts";
import { validRequest } from "./valid-request.ts";

type Handle = (context: Context, request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** `POST /v1/report`: a program behind a shim is about to start, or has ended. One handler for each listener. */
export function reportHandler(): Handle {
  const unread = new UnreadAnswers();
  return async ({ broker, caller }, request, response) => {
    const body = await validRequest<ReportRequest>(request, caller, validateReportRequest);
    if (isRefusal(body)) return sendRefusal(response, body);
    const { agent_id: agent, argv } = body.valid;
    const gone = whenClientLeaves(request, response);
    const asking = { gone, waits: () => response.writeProcessing() };
    const reply = await report(broker, agent, body.valid, asking);
    if (isRefusal(reply)) return sendRefusal(response, reply);
    if (argv !== undefined)
      unread.watch(request.socket, gone, () => closeUnanswered(broker, agent, reply.span_id));
    sendJson(response, 200, reply);
  };
}
