import type { Request, Response } from "express";
import { reload } from "../../broker/reload.ts";
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
