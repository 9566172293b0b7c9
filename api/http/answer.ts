import type { ServerResponse } from "node:http";
import type { Refusal } from "../../broker/model/refusal.ts";
import { ERRORS } from "./errors.ts";

/** Sends a JSON document; no-op after a sent or broken response. The listener has set `x-request-id` before. */
export function sendJson(response: ServerResponse, status: number, document: unknown): void {
  sendText(response, status, JSON.stringify(document));
}

/** As {@link sendJson}, of a document that is text already. */
export function sendText(response: ServerResponse, status: number, body: string): void {
  if (response.destroyed || response.headersSent) return;
  response.writeHead(status, {
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(body),
  });
  // A string, not a Buffer: Node writes headers and string together.
  response.end(body);
}

/** Sends a refusal as an error document, with the status of the code in {@link ERRORS}. */
export function sendRefusal(response: ServerResponse, error: Refusal): void {
  sendJson(response, ERRORS[error.code].status, { error });
}
