import type { Request } from "express";
import { resetBudget, showBudget, showBudgets } from "../../broker/budgets/show.ts";
import { isRefusal, quoted, type Refusal, refusal } from "../../broker/model/refusal.ts";
import type { Call } from "./call.ts";

/** `GET /v1/budgets`: everybody of whom something counts. */
export function handleBudgets({ broker }: Call): object {
  return showBudgets(broker);
}

/** `GET /v1/budgets/:agent_id?cwd=`: an agent's counts, with the limits that hold for it, or for it in a folder. */
export function handleBudget({ broker, request }: Call<undefined, Request>): object {
  const cwd = folderOf(request.query);
  return typeof cwd === "object" ? cwd : showBudget(broker, String(request.params["agent_id"]), cwd);
}

/** `DELETE /v1/budgets/:agent_id`: sets them to nothing used; the reset is on record. */
export function handleBudgetReset({ broker, log, request }: Call<undefined, Request>): object {
  const name = String(request.params["agent_id"]);
  const reply = resetBudget(broker, name);
  if (!isRefusal(reply)) log.info({ agent: name }, "An operator reset a budget");
  return reply;
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
