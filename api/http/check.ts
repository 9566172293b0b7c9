import { isRefusal } from "../../broker/model/refusal.ts";
import type { IncomingMessage, ServerResponse } from "node:http";
import { check } from "../../broker/journey/check.ts";
import type { ExecuteRequest } from "../../schemas/generated/types.ts";
import { validateExecuteRequest } from "../../schemas/generated/validators.js";
import { sendJson, sendRefusal } from "./answer.ts";
import type { Context } from "./context.ts";
import { validRequest } from "./valid-request.ts";

/** `POST /v1/check`: the verdict, whatever it is, with 200. */
export async function handleCheck(
  context: Context,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const body = await validRequest<ExecuteRequest>(request, context.caller, validateExecuteRequest);
  if (isRefusal(body)) return sendRefusal(response, body);
  const asker = context.caller.kind === "operator" ? "person" : "agent";
  const reply = check(context.broker, body.valid.agent_id, body.valid, asker);
  if (isRefusal(reply)) return sendRefusal(response, reply);
  sendJson(response, 200, reply);
}
