import type { ServerResponse } from "node:http";
import { type Refusal, refusal } from "../../broker/model/refusal.ts";
import { unavailable } from "../../broker/model/unavailable.ts";
import { sendRefusal } from "./answer.ts";
import { ClientLeft } from "./body.ts";
import type { Log } from "./context.ts";

/** Answers an unexpected error with `internal`: the log has the cause, the client the request id. A {@link ClientLeft} is not a bug. */
export function sendBug(response: ServerResponse, log: Log, error: unknown): void {
  const id = String(response.getHeader("x-request-id"));
  if (error instanceof ClientLeft) return log.info({ request: id }, error.message);
  const answer = logBug(log, id, error);
  if (!response.destroyed) sendRefusal(response, answer);
}

/** Logs an unexpected error; returns the answer for the client. A world agent or virtual machine that does not answer is not a bug. */
export function logBug(log: Log, id: string, error: unknown): Refusal {
  const away = unavailable(error);
  if (away !== undefined) {
    log.warn({ err: error, request: id }, "A request failed because no world can be made or reached");
    return away;
  }
  log.error({ err: error, request: id }, "A request failed because of a bug");
  return refusal(
    "internal",
    "The broker failed to answer: this is a bug",
    `The broker's log has the cause under request ${id}`,
  );
}
