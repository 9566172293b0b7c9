import type { Request } from "express";
import { restartWorld, warmWorld } from "../../broker/journey/operate-worlds.ts";
import { publishWorld } from "../../broker/journey/publish-world.ts";
import { isRefusal, stopping } from "../../broker/model/refusal.ts";
import type {
  WorldPublishRequest,
  WorldRestartRequest,
  WorldWarmRequest,
} from "../../schemas/generated/types.ts";
import type { Call } from "./call.ts";

/** `POST /v1/world/warm`: makes the session's world. */
export function handleWarm(call: Call<WorldWarmRequest, Request>): Promise<object> {
  return operate(call, () => warmWorld(call.broker, call.body));
}

/** `POST /v1/world/restart`: ends the session's world or all worlds, with all their processes. */
export function handleRestart(call: Call<WorldRestartRequest, Request>): Promise<object> {
  return operate(call, () => restartWorld(call.broker, call.body));
}

/** `POST /v1/world/publish`: opens or closes a host port leading into the session's world. */
export function handlePublish(call: Call<WorldPublishRequest, Request>): Promise<object> {
  return operate(call, () => publishWorld(call.broker, call.body));
}

async function operate(
  { broker, log, request, body }: Call<object, Request>,
  act: () => Promise<object>,
): Promise<object> {
  const reply = await broker.activity.during(act);
  if (reply === undefined) return stopping();
  if (!isRefusal(reply))
    log.info({ path: request.path, request: body }, "An operator's call about worlds has ended");
  return reply;
}
