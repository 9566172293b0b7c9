import type { Request } from "express";
import { replay } from "../../broker/journey/replay.ts";
import { isRefusal, stopping } from "../../broker/model/refusal.ts";
import type { ReplayRequest } from "../../schemas/generated/types.ts";
import type { Call } from "./call.ts";
import { whenClientLeaves } from "./client-leaves.ts";
import { spanNamed, unknownSpan } from "./held.ts";

/** `POST /v1/replay/:span_id`. Another agent's span counts as unknown. */
export async function handleReplay(call: Call<ReplayRequest, Request>): Promise<object> {
  const { broker, caller, log, body, request, response } = call;
  const signal = whenClientLeaves(request, response);
  const span = spanNamed(call, request);
  if (span === undefined) return unknownSpan(request);
  const isOperator = caller.kind === "operator";
  const reply = await broker.activity.during(() => replay(broker, span, body, isOperator, signal));
  if (reply === undefined) return stopping();
  if (isRefusal(reply) && reply.code === "internal")
    log.error({ refusal: reply }, "A replay failed because of a bug");
  return reply;
}
