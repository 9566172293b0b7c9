import { isRefusal, quoted, type Refusal, refusal } from "../../broker/model/refusal.ts";
import type { Request, Response } from "express";
import { replay } from "../../broker/journey/replay.ts";
import type { ReplayRequest } from "../../schemas/generated/types.ts";
import { validateReplayRequest } from "../../schemas/generated/validators.js";
import { sendJson, sendRefusal } from "./answer.ts";
import { maySee } from "./caller.ts";
import { whenClientLeaves } from "./client-leaves.ts";
import type { Context } from "./context.ts";
import { validDocument, type Validator } from "./valid-request.ts";

/** `POST /v1/replay/:span_id`. Somebody else's span is as unknown as one that never was. */
export async function handleReplay(
  { broker, caller, log }: Context,
  request: Request,
  response: Response,
): Promise<void> {
  const validate: Validator<ReplayRequest> = validateReplayRequest;
  const signal = whenClientLeaves(request, response);
  const body = await validDocument(request, validate);
  if (isRefusal(body)) return sendRefusal(response, body);
  const id = String(request.params["span_id"]);
  const span = broker.trace.find(id);
  if (span === undefined || !maySee(caller, span.agent_id)) return sendRefusal(response, unknownSpan(id));
  const isOperator = caller.kind === "operator";
  const reply = await broker.activity.during(() => replay(broker, span, body.valid, isOperator, signal));
  if (reply === undefined) return sendRefusal(response, stopping());
  if (!isRefusal(reply)) return sendJson(response, 200, reply);
  if (reply.code === "internal") log.error({ refusal: reply }, "A replay failed for a reason that is a bug");
  sendRefusal(response, reply);
}

function unknownSpan(id: string): Refusal {
  return refusal(
    "not_found",
    `No span is called ${quoted(id)}`,
    "Take a span_id from a reply, or from GET /v1/spans ('substrate trace list')",
  );
}

function stopping(): Refusal {
  return refusal("busy", "The broker is stopping", "Try again once it runs", { retry_after_ms: 1000 });
}
