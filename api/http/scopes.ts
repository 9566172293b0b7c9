import { isRefusal, refusal } from "../../broker/model/refusal.ts";
import type { Request, Response } from "express";
import { requestScopes } from "../../broker/scopes/request-scopes.ts";
import type { RequestScopesRequest } from "../../schemas/generated/types.ts";
import { validateRequestScopesRequest } from "../../schemas/generated/validators.js";
import { sendJson, sendRefusal } from "./answer.ts";
import type { Context } from "./context.ts";
import { validRequest } from "./valid-request.ts";
import { whenClientLeaves } from "./client-leaves.ts";

/** `POST /v1/request_scopes`: a token, or who must be asked first. The token is in this answer and in no log. */
export async function handleRequestScopes(
  { broker, caller }: Context,
  request: Request,
  response: Response,
): Promise<void> {
  const body = await validRequest<RequestScopesRequest>(request, caller, validateRequestScopesRequest);
  if (isRefusal(body)) return sendRefusal(response, body);
  const { valid } = body;
  const signal = whenClientLeaves(request, response);
  const reply = await broker.activity.during(() => requestScopes(broker, valid.agent_id, valid, signal));
  if (reply === undefined)
    return sendRefusal(
      response,
      refusal("busy", "The broker is stopping", "Try again once it runs", { retry_after_ms: 1000 }),
    );
  if (isRefusal(reply)) return sendRefusal(response, reply);
  sendJson(response, 200, reply);
}
