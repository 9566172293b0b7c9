import type { BudgetLimits, BudgetName, PolicyDocument } from "../../schemas/generated/types.ts";

export const BUDGET_NAMES: readonly BudgetName[] = ["max_execs", "max_runtime_ms", "max_egress_bytes"];

/** The default window, in milliseconds. Use is always counted in this window too, whatever a policy names. */
export const USUAL_WINDOW_MS = 24 * 60 * 60 * 1000;

/** A hundred years; a date further away cannot be represented. */
const LONGEST_WINDOW_MS = 36_500 * USUAL_WINDOW_MS;

const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: USUAL_WINDOW_MS } as const;

/** The limits of one policy in its window: for each agent, and for all labels together. */
export type Allowance = {
  readonly windowMs: number;
  readonly own: BudgetLimits;
  readonly shared: BudgetLimits;
};

/**
 * Merges `net.egress_budget.total_bytes` with `max_egress_bytes`: both limit an agent in the same window, and so each of its
 * worlds.
 */
export function allowanceOf({ budgets, net }: PolicyDocument): Allowance {
  const windowMs = budgets?.window === undefined ? USUAL_WINDOW_MS : durationMs(budgets.window);
  const total = net?.egress_budget?.total_bytes;
  const own = lowest(budgets?.default ?? {}, total === undefined ? {} : { max_egress_bytes: total });
  return { windowMs, own, shared: budgets?.shared ?? {} };
}

/** Returns the lower of each limit; a missing limit is infinite. */
export function lowest(one: BudgetLimits, other: BudgetLimits): BudgetLimits {
  const limits: Partial<Record<BudgetName, number>> = {};
  for (const name of BUDGET_NAMES) {
    const lower = Math.min(one[name] ?? Number.POSITIVE_INFINITY, other[name] ?? Number.POSITIVE_INFINITY);
    if (lower !== Number.POSITIVE_INFINITY) limits[name] = lower;
  }
  return limits;
}

/** Parses a number with ms, s, m, h or d, as defined in the schema of policies, to milliseconds. */
export function durationMs(text: string): number {
  const count = Number.parseInt(text, 10);
  const unit = text.replace(/^[0-9]+/, "") as keyof typeof UNIT_MS;
  return Math.min(count * UNIT_MS[unit], LONGEST_WINDOW_MS);
}
