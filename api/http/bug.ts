import type { ServerResponse } from "node:http";
import { refusal } from "../../broker/refusal.ts";
import { sendRefusal } from "./answer.ts";
import type { Log } from "./context.ts";

/** What nobody foresaw: the log has the cause, the client an id to find it by. */
export function sendBug(response: ServerResponse, log: Log, error: unknown): void {
  if (response.destroyed) return;
  const id = String(response.getHeader("x-request-id"));
  log.error({ error, request: id }, "A request failed for a reason that is a bug");
  sendRefusal(
    response,
    refusal(
      "internal",
      "The broker failed to answer: this is a bug",
      `The broker's log has the cause under request ${id}`,
    ),
  );
}
