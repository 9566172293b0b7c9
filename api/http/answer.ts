import type { ServerResponse } from "node:http";
import type { Refusal } from "../../broker/model/refusal.ts";
import { ERRORS } from "./errors.ts";

/** Sends a JSON document. The request id was set when the request came in. */
export function sendJson(response: ServerResponse, status: number, document: unknown): void {
  if (response.destroyed || response.headersSent) return;
  const body = JSON.stringify(document);
  response.writeHead(status, {
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(body),
  });
  // As text: Node puts it behind the headers and writes both at once.
  response.end(body);
}

/** Sends a refusal in the one error shape, with the status that the table gives its code. */
export function sendRefusal(response: ServerResponse, error: Refusal): void {
  sendJson(response, ERRORS[error.code].status, { error });
}
