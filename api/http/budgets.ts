import { isRefusal, quoted, type Refusal, refusal } from "../../broker/model/refusal.ts";
import type { Request, Response } from "express";
import { resetBudget, showBudget, showBudgets } from "../../broker/budgets/show.ts";
import { sendJson, sendRefusal } from "./answer.ts";
import type { Context } from "./context.ts";

/** `GET /v1/budgets`: everybody of whom something counts. */
export function handleBudgets({ broker }: Context, _request: Request, response: Response): void {
  send(response, showBudgets(broker));
}

/** `GET /v1/budgets/:agent_id?cwd=`: an agent's counts, with the limits that hold for it, or for it in a folder. */
export function handleBudget({ broker }: Context, request: Request, response: Response): void {
  const cwd = folderOf(request.query);
  if (typeof cwd === "object") return sendRefusal(response, cwd);
  send(response, showBudget(broker, String(request.params["agent_id"]), cwd));
}

/** `DELETE /v1/budgets/:agent_id`: sets them to nothing used; the reset is on record. */
export function handleBudgetReset({ broker, log }: Context, request: Request, response: Response): void {
  const name = String(request.params["agent_id"]);
  const reply = resetBudget(broker, name);
  if (!isRefusal(reply)) log.info({ agent: name }, "An operator reset a budget");
  send(response, reply);
}

function send(response: Response, reply: object | Refusal): void {
  if (isRefusal(reply)) sendRefusal(response, reply);
  else sendJson(response, 200, reply);
}

function folderOf(query: Readonly<Record<string, unknown>>): string | undefined | Refusal {
  const strange = Object.keys(query).find((name) => name !== "cwd" || typeof query[name] !== "string");
  if (strange === undefined) return query["cwd"] as string | undefined;
  return refusal(
    "invalid_request",
    `${strange}: this call takes one 'cwd', received ${quoted(query[strange])}`,
    "Mend the query and ask again",
  );
}
