import type { BudgetLimits, BudgetName } from "../../schemas/generated/types.ts";
import { lowest } from "./limits.ts";

export type Counts = Record<BudgetName, number>;

/** A running window, from its first use until its length has passed. Times are milliseconds since 1970. */
export type Meter = {
  readonly lengthMs: number;
  readonly begunAt: number;
  readonly used: Counts;
  /** The lowest limits named by calls; they bind until the window ends. */
  lowered: BudgetLimits;
};

/** The limits in one window, and the amounts used there. */
export type Gate = {
  readonly lengthMs: number;
  readonly limits: BudgetLimits;
  /** Limits named by calls, not by the policy. */
  readonly lowered: BudgetLimits;
  readonly used: Counts;
  /** Undefined before the first use. */
  readonly begunAt: number | undefined;
};

/**
 * The use of one agent, or of all labels together. Each use counts in every running window, whatever its policy; reserved amounts
 * count in all windows too, including windows begun later.
 */
export class Account {
  readonly reserved: Counts = nothing();
  /** Running commands and open connections, which reserve in this account although they may not have reserved anything yet. */
  holders = 0;
  #meters: readonly Meter[];

  constructor(meters: readonly Meter[] = []) {
    this.#meters = meters;
  }

  /** Charges all running windows, and begins windows of the given lengths where none runs. */
  charge(name: BudgetName, amount: number, at: number, lengthsMs: readonly number[]): void {
    for (const meter of this.#running(at, lengthsMs)) meter.used[name] += amount;
  }

  /** Takes back an amount charged at `chargedAt`. A window begun later had not counted the charge. */
  refund(name: BudgetName, amount: number, chargedAt: number): void {
    for (const meter of this.#meters)
      if (meter.begunAt <= chargedAt) meter.used[name] = Math.max(0, meter.used[name] - amount);
  }

  lower(limits: BudgetLimits, at: number, lengthsMs: readonly number[]): void {
    const running = this.#running(at, lengthsMs);
    for (const meter of running.filter(({ lengthMs }) => lengthsMs.includes(lengthMs)))
      meter.lowered = lowest(meter.lowered, limits);
  }

  /** Returns the limits in force: the given limit of each window length, lowered by calls in running windows. */
  gates(given: ReadonlyMap<number, BudgetLimits>, at: number): readonly Gate[] {
    const meters = this.#meters.filter((meter) => runs(meter, at));
    const unused = [...given.keys()].filter((length) => meters.every(({ lengthMs }) => lengthMs !== length));
    return [
      ...meters.map(({ lengthMs, begunAt, used, lowered }) => {
        const limits = lowest(given.get(lengthMs) ?? {}, lowered);
        return { lengthMs, limits, lowered, used, begunAt };
      }),
      ...unused.map((lengthMs) => {
        const limits = given.get(lengthMs) ?? {};
        return { lengthMs, limits, lowered: {}, used: nothing(), begunAt: undefined };
      }),
    ];
  }

  /** Returns the remaining amount: infinite without a limit, never below 0. */
  room({ limits, used }: Gate, name: BudgetName): number {
    const limit = limits[name];
    return limit === undefined
      ? Number.POSITIVE_INFINITY
      : Math.max(0, limit - used[name] - this.reserved[name]);
  }

  reset(): void {
    this.#meters = [];
  }

  /** Whether nobody can reserve and no window runs. */
  isIdle(at: number): boolean {
    return this.holders === 0 && !this.hasUsed(at);
  }

  hasUsed(at: number): boolean {
    return this.#meters.some((meter) => runs(meter, at));
  }

  /** Returns a copy for storing. */
  meters(): readonly Meter[] {
    return this.#meters.map((meter) => ({ ...meter, used: { ...meter.used } }));
  }

  #running(at: number, lengthsMs: readonly number[]): readonly Meter[] {
    if (this.#isCurrent(at, lengthsMs)) return this.#meters;
    const running = this.#meters.filter((meter) => runs(meter, at));
    const missing = lengthsMs.filter((length) => running.every(({ lengthMs }) => lengthMs !== length));
    const begun = missing.map((lengthMs) => ({ lengthMs, begunAt: at, used: nothing(), lowered: {} }));
    this.#meters = [...running, ...begun];
    return this.#meters;
  }

  /** Nearly always true and asked several times per command: allocates no array. */
  #isCurrent(at: number, lengthsMs: readonly number[]): boolean {
    for (const meter of this.#meters) if (!runs(meter, at)) return false;
    for (const length of lengthsMs)
      if (!this.#meters.some(({ lengthMs }) => lengthMs === length)) return false;
    return true;
  }
}

/** Whether a window still runs. Setting the clock back a little ends no window; a window begun with a clock years ahead ends. */
function runs({ begunAt, lengthMs }: Meter, at: number): boolean {
  return Math.abs(at - begunAt) < lengthMs;
}

export function nothing(): Counts {
  return { max_execs: 0, max_runtime_ms: 0, max_egress_bytes: 0 };
}
