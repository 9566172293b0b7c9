import { isRefusal, refusal } from "../../broker/model/refusal.ts";
import type { IncomingMessage, ServerResponse } from "node:http";
import { execute } from "../../broker/journey/execute.ts";
import { BY_PERSON, IN_WORLD } from "../../broker/project/request.ts";
import type { ExecuteRequest } from "../../schemas/generated/types.ts";
import { validateExecuteRequest } from "../../schemas/generated/validators.js";
import { sendJson, sendRefusal } from "./answer.ts";
import { textReply } from "./text-reply.ts";
import { whenClientLeaves } from "./client-leaves.ts";
import type { Context } from "./context.ts";
import { validRequest } from "./valid-request.ts";

/** `POST /v1/execute`: bytes to a valid request, the journey, and its outcome as an answer. */
export async function handleExecute(
  context: Context,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const body = await validRequest<ExecuteRequest>(request, context.caller, validateExecuteRequest);
  if (isRefusal(body)) return sendRefusal(response, body);
  if (body.valid.pty === true) {
    return sendRefusal(
      response,
      refusal(
        "invalid_request",
        "pty: this call has no terminal to give, received 'true'",
        "Use GET /v1/stream for a terminal, or leave 'pty' out",
        { path: "pty" },
      ),
    );
  }
  const outcome = await execute(
    context.broker,
    body.valid.agent_id,
    body.valid,
    whenClientLeaves(request, response),
    {
      ...(context.caller.kind === "operator" ? BY_PERSON : IN_WORLD),
      call: String(response.getHeader("x-request-id")),
    },
  );
  if (outcome.kind === "refused") {
    const { error } = outcome;
    if (error.code === "internal")
      context.log.error({ refusal: error }, "A command failed for a reason that is a bug");
    return sendRefusal(response, error);
  }
  sendJson(response, 200, body.valid.format === "text" ? textReply(outcome.reply) : outcome.reply);
  if (outcome.sent === undefined) return;
  if (response.closed || response.destroyed) outcome.sent();
  else response.once("close", outcome.sent);
}
