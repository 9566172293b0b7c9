import type { ServerResponse } from "node:http";
import type { LiveClient } from "../../broker/live/live-command.ts";
import { isRefusal, type Refusal } from "../../broker/model/refusal.ts";
import { logBug } from "./bug.ts";
import { readJson } from "./body.ts";
import type { Call, Read } from "./call.ts";
import { exitMessage } from "./exit-message.ts";
import { type StreamOrder, streamOrder } from "./stream-order.ts";
import { liveCommand } from "./run-live.ts";

/** Reads the body of `POST /v1/stream`. */
export const readStream: Read<StreamOrder> = async (request, context) => {
  const sent = await readJson(request, context);
  if (isRefusal(sent)) return sent;
  const order = streamOrder(sent.document, context.caller, false);
  return isRefusal(order) ? order : { valid: order };
};

/**
 * `POST /v1/stream`: runs a command and sends its output as server-sent events while it runs: `started`, `stdout` and `stderr` in
 * base64, then `exit` or `error`.
 */
export async function handleStream(call: Call<StreamOrder>): Promise<undefined> {
  const { body, request, response, log } = call;
  response.writeHead(200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
  });
  response.flushHeaders();
  const client = clientOf(response, body.tellsQuestions);
  const id = String(response.getHeader("x-request-id"));
  const { command, run } = liveCommand(call, body, client, id);
  const leave = (): void => command.leave(client);
  request.socket.once("close", leave);
  try {
    await run();
  } catch (error) {
    sendEvent(response, "error", errorMessage(logBug(log, id, error)));
  } finally {
    request.socket.off("close", leave);
    response.end();
  }
  return undefined;
}

function clientOf(response: ServerResponse, tellsQuestions: boolean): LiveClient {
  return {
    started: (start) => sendEvent(response, "started", { type: "started", ...start }),
    output: (stream, bytes, taken) => {
      if (response.destroyed) return taken();
      const text = Buffer.from(bytes).toString("base64");
      // Called also for a broken connection.
      response.write(`event: ${stream}\ndata: ${text}\n\n`, () => taken());
    },
    inputTaken: () => {},
    stopped: () => {},
    pause: () => {},
    asked: (approval) => {
      if (tellsQuestions) sendEvent(response, "question", { type: "question", approval_id: approval });
    },
    ended: (outcome) => {
      if (outcome.kind === "refused") return sendEvent(response, "error", errorMessage(outcome.error));
      const { complaint } = outcome;
      if (complaint !== undefined && complaint.length > 0)
        response.write(`event: stderr\ndata: ${complaint.toString("base64")}\n\n`);
      sendEvent(response, "exit", exitMessage(outcome));
    },
  };
}

export function errorMessage(error: Refusal): { readonly type: "error"; readonly error: Refusal } {
  return { type: "error", error };
}

function sendEvent(response: ServerResponse, event: string, document: object): void {
  if (!response.destroyed) response.write(`event: ${event}\ndata: ${JSON.stringify(document)}\n\n`);
}
