import type { Request, Response } from "express";
import { restartWorld, warmWorld } from "../../broker/journey/operate-worlds.ts";
import { publishWorld } from "../../broker/journey/publish-world.ts";
import { isRefusal, type Refusal, refusal } from "../../broker/model/refusal.ts";
import type {
  WorldPublishRequest,
  WorldRestartRequest,
  WorldWarmRequest,
} from "../../schemas/generated/types.ts";
import {
  validateWorldPublishRequest,
  validateWorldRestartRequest,
  validateWorldWarmRequest,
} from "../../schemas/generated/validators.js";
import { sendJson, sendRefusal } from "./answer.ts";
import type { Context } from "./context.ts";
import { validDocument, type Validator } from "./valid-request.ts";

/** `POST /v1/world/warm`: the session's world, made now. */
export function handleWarm(context: Context, request: Request, response: Response): Promise<void> {
  const validate: Validator<WorldWarmRequest> = validateWorldWarmRequest;
  return operate(context, request, response, validate, (body) => warmWorld(context.broker, body));
}

/** `POST /v1/world/restart`: the session's world, or all of them, ended with everything inside. */
export function handleRestart(context: Context, request: Request, response: Response): Promise<void> {
  const validate: Validator<WorldRestartRequest> = validateWorldRestartRequest;
  return operate(context, request, response, validate, (body) => restartWorld(context.broker, body));
}

/** `POST /v1/world/publish`: a port of the host that leads into the session's world, opened or closed. */
export function handlePublish(context: Context, request: Request, response: Response): Promise<void> {
  const validate: Validator<WorldPublishRequest> = validateWorldPublishRequest;
  return operate(context, request, response, validate, (body) => publishWorld(context.broker, body));
}

async function operate<Body>(
  { broker, log }: Context,
  request: Request,
  response: Response,
  validate: Validator<Body>,
  act: (body: Body) => Promise<object | Refusal>,
): Promise<void> {
  const body = await validDocument(request, validate);
  if (isRefusal(body)) return sendRefusal(response, body);
  const reply = await broker.activity.during(() => act(body.valid));
  if (reply === undefined) return sendRefusal(response, stopping());
  if (isRefusal(reply)) return sendRefusal(response, reply);
  log.info({ path: request.path, request: body.valid }, "An operator's call about worlds is done");
  sendJson(response, 200, reply);
}

function stopping(): Refusal {
  return refusal("busy", "The broker is stopping", "Try again once it runs", { retry_after_ms: 1000 });
}
