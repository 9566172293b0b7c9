/** What every call goes through: what it sends is read and checked, its handler is asked, and what comes of it is sent. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { isRefusal, type Refusal } from "../../broker/model/refusal.ts";
import { sendJson, sendRefusal } from "./answer.ts";
import type { Context } from "./context.ts";

/** From a request to what its handler gets of it, or why the call is refused before. */
export type Read<Body, From extends IncomingMessage = IncomingMessage> = (
  request: From,
  context: Context,
) => Promise<{ readonly valid: Body } | Refusal>;

/** A call that makes sense. */
export type Call<Body = undefined, From extends IncomingMessage = IncomingMessage> = Context & {
  readonly body: Body;
  readonly request: From;
  readonly response: ServerResponse;
};

/** Returns the reply or a refusal; undefined when it has sent its answer itself. */
export type Handle<Body, From extends IncomingMessage> = (
  call: Call<Body, From>,
) => object | undefined | Promise<object | undefined>;

export type Answer<From extends IncomingMessage> = (
  context: Context,
  request: From,
  response: ServerResponse,
) => Promise<void>;

/** The one way from a request to its answer. */
export function answering<Body, From extends IncomingMessage>(
  read: Read<Body, From>,
  handle: Handle<Body, From>,
): Answer<From> {
  return async (context, request, response) => {
    const body = await read(request, context);
    if (isRefusal(body)) return sendRefusal(response, body);
    const reply = await handle({ ...context, body: body.valid, request, response });
    if (reply === undefined) return;
    if (isRefusal(reply)) sendRefusal(response, reply);
    else sendJson(response, 200, reply);
  };
}
