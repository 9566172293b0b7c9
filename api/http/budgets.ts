import type { Request } from "express";
import { resetBudget, showBudget, showBudgets } from "../../broker/budgets/show.ts";
import { isRefusal, quoted, type Refusal, refusal } from "../../broker/model/refusal.ts";
import type { Call } from "./call.ts";

/** `GET /v1/budgets`: lists all agents with counts. */
export function handleBudgets({ broker }: Call): object {
  return showBudgets(broker);
}

/** `GET /v1/budgets/:agent_id?cwd=`: shows an agent's counts and limits; with `cwd`, the limits in the folder. */
export function handleBudget({ broker, request }: Call<undefined, Request>): object {
  const cwd = folderOf(request.query);
  return typeof cwd === "object" ? cwd : showBudget(broker, String(request.params["agent_id"]), cwd);
}

/** `DELETE /v1/budgets/:agent_id`: sets an agent's counts to zero and records the reset. */
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
    `${strange}: this call accepts one 'cwd' and no other parameter, received ${quoted(query[strange])}`,
    "Correct the query and send it again",
  );
}
