import { isRefusal } from "../../broker/model/refusal.ts";
import type { Request, Response } from "express";
import { reload, showPolicyInForce } from "../../broker/journey/reload.ts";
import { sendJson, sendRefusal } from "./answer.ts";
import type { Context } from "./context.ts";
import { noFields } from "./valid-request.ts";

/** `POST /v1/policy/reload`: 200 with what holds now, also when a file does not load. */
export async function handleReload(
  { broker, log }: Context,
  request: Request,
  response: Response,
): Promise<void> {
  const strange = await noFields(request);
  if (strange !== undefined) return sendRefusal(response, strange);
  const reply = reload(broker);
  log.info({ policies: reply.policies.length }, "An operator had the policies read again");
  sendJson(response, 200, reply);
}

/** `GET /v1/policy/:name`: what holds now, also when the file does not load. */
export function handlePolicy({ broker }: Context, request: Request, response: Response): void {
  const reply = showPolicyInForce(broker, String(request.params["name"]));
  if (isRefusal(reply)) sendRefusal(response, { ...reply, code: "not_found" });
  else sendJson(response, 200, reply);
}
