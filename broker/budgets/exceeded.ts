import type { BudgetName, SpentBudget } from "../../schemas/generated/types.ts";
import { type Refusal, refusal } from "../model/refusal.ts";
import { type Shortage, SOON_MS } from "./budgets.ts";

const WORDS: Readonly<Record<BudgetName, string>> = {
  max_execs: "commands",
  max_runtime_ms: "milliseconds of run time",
  max_egress_bytes: "bytes to the network",
};

/** Refuses a call because of an exhausted budget. */
export function exceeded(agent: string, policy: string, shortage: Shortage): Refusal {
  const { spent, retryAfterMs } = shortage;
  return refusal(
    "budget_exceeded",
    `Budget ${spent.name} is used up: ${whose(agent, spent)} may use ${wordsOf(spent)}; ${spent.used} are used or reserved by commands that run or wait for approval`,
    hintOf(shortage),
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

function hintOf({ spent, retryAfterMs, lowered }: Shortage): string {
  const { limit, resets_at: end, shared } = spent;
  const mend = lowered ? "reset it (a call named this limit in its own 'budget')" : "raise or reset it";
  const operator = `ask the operator to look at 'substrate budget show' and ${mend}`;
  const other = shared === true ? "; another agent_id has the same budget" : "";
  if (retryAfterMs === undefined || (limit === 0 && !lowered))
    return `This budget is zero: ${operator}${other}`;
  const wait =
    end === undefined || retryAfterMs <= SOON_MS
      ? "Try again when the commands that reserve it have ended"
      : `Wait until ${end}`;
  return `${wait}, or ${operator}${other}`;
}
