/** What tests of budgets share: brokers with them, and what they say. */
import { expect } from "vitest";
import type { BudgetName, BudgetReply, BudgetState } from "../../../schemas/generated/types.ts";
import { validateBudgetReply } from "../../../schemas/generated/validators.js";
import type { Actor } from "../users/users.ts";
import { type BrokerOptions, TestBroker } from "./broker.ts";

/** `again` starts the next broker in the same home, once the one before is gone; the last one is stopped. */
export async function withBroker(
  actor: Actor,
  options: BrokerOptions,
  use: (broker: TestBroker, again: () => Promise<TestBroker>) => Promise<void>,
): Promise<void> {
  let last = await TestBroker.start(actor, options);
  const again = async (): Promise<TestBroker> => {
    last = await last.again();
    return last;
  };
  try {
    await use(last, again);
  } finally {
    await last.stop();
  }
}

/** An enforcing policy with these budgets. */
export function giving(budgets: string, more = ""): Pick<BrokerOptions, "policies"> {
  return { policies: { default: `id: default\nname: x\nmode: enforce\nbudgets: ${budgets}\n${more}` } };
}

export async function budgetOf(broker: TestBroker, agent: string): Promise<BudgetReply> {
  const { status, document } = await broker.operator("GET", `/v1/budgets/${encodeURIComponent(agent)}`);
  expect(status, JSON.stringify(document)).toBe(200);
  expect(validateBudgetReply(document), JSON.stringify(validateBudgetReply.errors)).toBe(true);
  return document as BudgetReply;
}

export async function stateOf(broker: TestBroker, agent: string, name: BudgetName): Promise<BudgetState> {
  const { budget } = await budgetOf(broker, agent);
  const state = budget.windows[0]?.budgets.find((each) => each.name === name);
  if (state === undefined) throw new Error(`Expected ${name} in ${JSON.stringify(budget)}`);
  return state;
}

/** How many commands began, by the trace. */
export function begun(broker: TestBroker): number {
  return broker.spans().filter((span) => span.event_type === "command_start").length;
}
