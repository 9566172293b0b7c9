/** Limits on a world's egress: pacers (token buckets) and budgets. */

/** Grants bytes before each write to the outside. */
export interface Allowance {
  /**
   * Grants 1 to `wanted` bytes (`wanted` is at least 1). Returns 0 when a budget is used up or a pacer has stopped:
   * then cut the stream.
   */
  take(wanted: number): number | Promise<number>;
  /** Returns granted bytes that were not sent. */
  giveBack(bytes: number): void;
}

/** A budget from which bytes are reserved before sending, and settled by the bytes sent. */
export interface ByteBudget {
  /** Reserves at most `bytes`; 0 when the budget is used up. */
  reserve(bytes: number): number;
  settle(reserved: number, used: number): void;
}

/** Combines pacers and budgets into the allowance of a stream. Without any, everything passes at once. */
export function allowanceOf(pacers: readonly Allowance[], budgets: readonly ByteBudget[]): Allowance {
  if (pacers.length === 0 && budgets.length === 0) return UNLIMITED;
  return {
    take: (wanted) => (pacers.length === 0 ? reserve(budgets, wanted) : takePaced(pacers, budgets, wanted)),
    giveBack: (bytes) => {
      for (const pacer of pacers) pacer.giveBack(bytes);
      for (const budget of budgets) budget.settle(bytes, 0);
    },
  };
}

/** Delegates to `current()` at each call: rates may change while a stream is open. */
export function followingAllowance(current: () => Allowance): Allowance {
  return { take: (wanted) => current().take(wanted), giveBack: (bytes) => current().giveBack(bytes) };
}

const UNLIMITED: Allowance = { take: (wanted) => wanted, giveBack: () => undefined };

/**
 * Takes from the pacers in sequence, each up to the previous grant, so a waiting stream holds few bytes of other
 * pacers.
 */
async function takePaced(
  pacers: readonly Allowance[],
  budgets: readonly ByteBudget[],
  wanted: number,
): Promise<number> {
  const taken: { readonly pacer: Allowance; readonly bytes: number }[] = [];
  let granted = wanted;
  for (const pacer of pacers) {
    granted = await pacer.take(granted);
    taken.push({ pacer, bytes: granted });
    if (granted === 0) break;
  }
  if (granted > 0) granted = reserve(budgets, granted);
  for (const { pacer, bytes } of taken) pacer.giveBack(bytes - granted);
  return granted;
}

/** Reserves in a single turn of the event loop, so parallel streams never reserve the same bytes. */
function reserve(budgets: readonly ByteBudget[], wanted: number): number {
  let granted = wanted;
  const reserved = budgets.map((budget) => {
    const got = granted === 0 ? 0 : budget.reserve(granted);
    granted = Math.min(granted, got);
    return got;
  });
  for (const [index, budget] of budgets.entries()) {
    const excess = (reserved[index] ?? 0) - granted;
    if (excess > 0) budget.settle(excess, 0);
  }
  return granted;
}
