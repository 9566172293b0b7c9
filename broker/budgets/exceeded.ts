import type { BudgetName, SpentBudget } from "../../schemas/generated/types.ts";
import { type Refusal, refusal } from "../refusal.ts";
import type { Shortage } from "./budgets.ts";

const WORDS: Readonly<Record<BudgetName, string>> = {
  max_execs: "commands",
  max_runtime_ms: "milliseconds of run time",
  max_egress_bytes: "bytes to the network",
};

/** The refusal of a call that a budget does not reach for. */
export function exceeded(agent: string, policy: string, { spent, retryAfterMs }: Shortage): Refusal {
  return refusal(
    "budget_exceeded",
    `Budget ${spent.name} is used up: ${whose(agent, spent)} may use ${wordsOf(spent)}, and ${spent.used} are used or held by running commands`,
    hintOf(spent, retryAfterMs),
    {
      policy_id: policy,
      budget: spent,
      ...(retryAfterMs === undefined ? {} : { retry_after_ms: Math.ceil(retryAfterMs) }),
    },
  );
}

/** The limit in words: `10 commands until 2026-01-31T12:00:00.000Z`. */
export function wordsOf({ name, limit, resets_at: end }: SpentBudget): string {
  return `${limit} ${WORDS[name]}${end === undefined ? "" : ` until ${end}`}`;
}

export function whose(agent: string, { shared }: SpentBudget): string {
  return shared === true ? "all labels together" : `agent '${agent}'`;
}

function hintOf({ resets_at: end, shared }: SpentBudget, retryAfterMs: number | undefined): string {
  const operator =
    "ask the operator to look at 'substrate budget show' and raise the limit or reset the budget";
  const other = shared === true ? "; another agent_id has the same budget" : "";
  if (end === undefined) return `This budget allows none at all: ${operator}${other}`;
  const wait =
    retryAfterMs !== undefined && retryAfterMs <= 1000 ? "Wait for running commands" : `Wait until ${end}`;
  return `${wait}, or ${operator}${other}`;
}
