import type { Request, Response } from "express";
import { reload } from "../../broker/reload.ts";
import { sendJson } from "./answer.ts";
import type { Context } from "./context.ts";

/** `POST /v1/policy/reload`: 200 with what holds now, also when a file does not load. */
export function handleReload({ broker, log }: Context, _request: Request, response: Response): void {
  const reply = reload(broker);
  log.info({ policies: reply.policies.length }, "An operator had the policies read again");
  sendJson(response, 200, reply);
}
