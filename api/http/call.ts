/** The steps of every call: read and check the request, run the handler, send the reply. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { isRefusal, type Refusal } from "../../broker/model/refusal.ts";
import { sendRefusal, sendText } from "./answer.ts";
import { turnFor } from "../../broker/model/turns.ts";
import { unreadFill } from "./bounds.ts";
import type { Context } from "./context.ts";

/** Reads a request and returns the handler's valid input, or a refusal. */
export type Read<Body, From extends IncomingMessage = IncomingMessage> = (
  request: From,
  context: Context,
) => Promise<{ readonly valid: Body } | Refusal>;

/** A call with a valid body. */
export type Call<Body = undefined, From extends IncomingMessage = IncomingMessage> = Context & {
  readonly body: Body;
  readonly request: From;
  readonly response: ServerResponse;
};

/** A handler. Returns the reply or a refusal; undefined after sending the answer itself. */
export type Handle<Body, From extends IncomingMessage> = (
  call: Call<Body, From>,
) => object | undefined | Promise<object | undefined>;

export type Answer<From extends IncomingMessage> = (
  context: Context,
  request: From,
  response: ServerResponse,
) => Promise<void>;

/** Makes the answering function of a route from reader and handler. */
export function answering<Body, From extends IncomingMessage>(
  read: Read<Body, From>,
  handle: Handle<Body, From>,
): Answer<From> {
  return async (context, request, response) => {
    response.once("close", () => {
      context.bodies.release(request);
      context.replies.release(response);
    });
    const body = await read(request, context);
    if (isRefusal(body)) return sendRefusal(response, body);
    const wait = turnFor(bytesOf(request));
    if (wait !== undefined) await wait;
    const reply = await handle({ ...context, body: body.valid, request, response });
    if (reply === undefined) return;
    if (isRefusal(reply)) return sendRefusal(response, reply);
    const text = JSON.stringify(reply);
    const hasRoom = context.replies.keep(response, text.length);
    // What a POST did has been done: 'busy' would say that it was not.
    if (hasRoom || request.method !== "GET") sendText(response, 200, text);
    else sendRefusal(response, unreadFill());
  };
}

/** Bytes of a request's body; one in parts counts as long. */
function bytesOf({ headers }: IncomingMessage): number {
  return headers["transfer-encoding"] === undefined ? Number(headers["content-length"] ?? 0) : Infinity;
}
