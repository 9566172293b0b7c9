import type { BudgetLimits, BudgetName, PolicyDocument } from "../../schemas/generated/types.ts";

export const BUDGET_NAMES: readonly BudgetName[] = ["max_execs", "max_runtime_ms", "max_egress_bytes"];

/** The window of a policy that names none, in milliseconds. Everything is counted in it, whatever a policy names. */
export const USUAL_WINDOW_MS = 24 * 60 * 60 * 1000;

/** A hundred years; a time further away has no date. */
const LONGEST_WINDOW_MS = 36_500 * USUAL_WINDOW_MS;

const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: USUAL_WINDOW_MS } as const;

/** What one policy gives in its window: to each agent, and to all labels together. */
export type Allowance = {
  readonly windowMs: number;
  readonly own: BudgetLimits;
  readonly shared: BudgetLimits;
};

/** `net.egress_budget.total_bytes` limits an agent as `max_egress_bytes` does, in the same window: so also each of its worlds. */
export function allowanceOf({ budgets, net }: PolicyDocument): Allowance {
  const windowMs = budgets?.window === undefined ? USUAL_WINDOW_MS : durationMs(budgets.window);
  const total = net?.egress_budget?.total_bytes;
  const own = lowest(budgets?.default ?? {}, total === undefined ? {} : { max_egress_bytes: total });
  return { windowMs, own, shared: budgets?.shared ?? {} };
}

/** The lower of each limit; an absent one is no limit. */
export function lowest(one: BudgetLimits, other: BudgetLimits): BudgetLimits {
  const limits: Partial<Record<BudgetName, number>> = {};
  for (const name of BUDGET_NAMES) {
    const lower = Math.min(one[name] ?? Number.POSITIVE_INFINITY, other[name] ?? Number.POSITIVE_INFINITY);
    if (lower !== Number.POSITIVE_INFINITY) limits[name] = lower;
  }
  return limits;
}

/** Milliseconds of a number with ms, s, m, h or d, as the schema of policies has it. */
export function durationMs(text: string): number {
  const count = Number.parseInt(text, 10);
  const unit = text.replace(/^[0-9]+/, "") as keyof typeof UNIT_MS;
  return Math.min(count * UNIT_MS[unit], LONGEST_WINDOW_MS);
}
