import { refusal } from "../../broker/model/refusal.ts";
import { execute } from "../../broker/journey/execute.ts";
import { BY_PERSON, IN_WORLD } from "../../broker/project/request.ts";
import type { ExecuteRequest } from "../../schemas/generated/types.ts";
import { sendJson } from "./answer.ts";
import type { Call } from "./call.ts";
import { textReply } from "./text-reply.ts";
import { whenClientLeaves } from "./client-leaves.ts";

/** `POST /v1/execute`: runs the journey of a valid request and sends the outcome. */
export async function handleExecute(call: Call<ExecuteRequest>): Promise<object | undefined> {
  const { broker, caller, log, body, request, response } = call;
  if (body.pty === true) {
    return refusal(
      "invalid_request",
      "pty: this call cannot provide a terminal, received 'true'",
      "Use GET /v1/stream for a terminal, or leave 'pty' out",
      { path: "pty" },
    );
  }
  const outcome = await execute(broker, body.agent_id, body, whenClientLeaves(request, response), {
    ...(caller.kind === "operator" ? BY_PERSON : IN_WORLD),
    call: String(response.getHeader("x-request-id")),
  });
  if (outcome.kind === "refused") {
    const { error } = outcome;
    if (error.code === "internal") log.error({ refusal: error }, "A command failed because of a bug");
    return error;
  }
  sendJson(response, 200, body.format === "text" ? textReply(outcome.reply) : outcome.reply);
  if (outcome.sent === undefined) return undefined;
  if (response.closed || response.destroyed) outcome.sent();
  else response.once("close", outcome.sent);
  return undefined;
}
