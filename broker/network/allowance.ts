/** What lets bytes out of a world: buckets that pace them, and budgets that end. */

/** Asked before each write to the outside. */
export interface Allowance {
  /**
   * How many of `wanted` bytes (at least 1) may go out now: 1 to `wanted`, or 0 when the budget is used up or the pacer
   * has stopped, and the stream is to be cut.
   */
  take(wanted: number): number | Promise<number>;
  /** Returns what was taken and not sent. */
  giveBack(bytes: number): void;
}

/** An amount of bytes that is reserved before they are sent, and settled by how many were. */
export interface ByteBudget {
  /** At most `bytes`; 0 when nothing is left. */
  reserve(bytes: number): number;
  settle(reserved: number, used: number): void;
}

/** The allowance of one stream: what all its pacers and all its budgets let through. Without any it is all, at once. */
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

/** What `current` says whenever it is asked: rates may change while a stream is open. */
export function followingAllowance(current: () => Allowance): Allowance {
  return { take: (wanted) => current().take(wanted), giveBack: (bytes) => current().giveBack(bytes) };
}

const UNLIMITED: Allowance = { take: (wanted) => wanted, giveBack: () => undefined };

/** One bucket after the other, each for what the one before gave, so that what waits holds little of the others. */
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

/** Within one turn of the event loop, so that parallel streams never reserve the same bytes. */
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
