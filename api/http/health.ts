import { isRefusal } from "../../broker/model/refusal.ts";
import type { Request, Response } from "express";
import { health } from "../../broker/journey/health.ts";
import { sendJson, sendRefusal } from "./answer.ts";
import { maySee } from "./caller.ts";
import type { Context } from "./context.ts";

const PATIENCE_MS = 10_000;

/** `GET /v1/health`: what worlds on this host achieve, and the warm ones that the caller may see. */
export async function handleHealth(
  { broker, caller }: Context,
  _request: Request,
  response: Response,
): Promise<void> {
  const reply = await health(broker, (agent) => maySee(caller, agent), AbortSignal.timeout(PATIENCE_MS));
  if (isRefusal(reply)) return sendRefusal(response, reply);
  sendJson(response, 200, reply);
}
