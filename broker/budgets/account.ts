import type { BudgetLimits, BudgetName } from "../../schemas/generated/types.ts";
import { lowest } from "./limits.ts";

export type Counts = Record<BudgetName, number>;

/** One window: from its first use until its length has passed. Times are milliseconds since 1970. */
export type Meter = {
  readonly lengthMs: number;
  readonly begunAt: number;
  readonly used: Counts;
  /** The lowest limits that a call named; they bind until the window ends. */
  lowered: BudgetLimits;
};

/** What limits in one window, and what counts there already. */
export type Gate = {
  readonly lengthMs: number;
  readonly limits: BudgetLimits;
  /** What of them a call named, and not the policy. */
  readonly lowered: BudgetLimits;
  readonly used: Counts;
  /** Undefined before the first use. */
  readonly begunAt: number | undefined;
};

/**
 * What one agent, or all labels together, have used up. All that is used counts in every window that runs, whichever
 * policy it ran under; what is reserved counts towards all of them, also towards one that begins meanwhile.
 */
export class Account {
  readonly reserved: Counts = nothing();
  #meters: readonly Meter[];

  constructor(meters: readonly Meter[] = []) {
    this.#meters = meters;
  }

  /** Counts in all windows, and begins those of these lengths that do not run. */
  charge(name: BudgetName, amount: number, at: number, lengthsMs: readonly number[]): void {
    for (const meter of this.#running(at, lengthsMs)) meter.used[name] += amount;
  }

  /** Takes back what was charged at a time. A window that began later did not count it. */
  refund(name: BudgetName, amount: number, chargedAt: number): void {
    for (const meter of this.#meters)
      if (meter.begunAt <= chargedAt) meter.used[name] = Math.max(0, meter.used[name] - amount);
  }

  lower(limits: BudgetLimits, at: number, lengthsMs: readonly number[]): void {
    const running = this.#running(at, lengthsMs);
    for (const meter of running.filter(({ lengthMs }) => lengthsMs.includes(lengthMs)))
      meter.lowered = lowest(meter.lowered, limits);
  }

  /** What limits now: what is given for a window's length, and what calls named in windows that run. */
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

  /** What a gate still lets through; infinite without a limit, never below 0. */
  room({ limits, used }: Gate, name: BudgetName): number {
    const limit = limits[name];
    return limit === undefined
      ? Number.POSITIVE_INFINITY
      : Math.max(0, limit - used[name] - this.reserved[name]);
  }

  reset(): void {
    this.#meters = [];
  }

  /** Nothing is held, and nothing counts any more. */
  isIdle(at: number): boolean {
    return Object.values(this.reserved).every((held) => held === 0) && !this.hasUsed(at);
  }

  hasUsed(at: number): boolean {
    return this.#meters.some((meter) => runs(meter, at));
  }

  /** A copy to be kept. */
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

  /** Nearly always so, and asked several times for each command: without a list of its own. */
  #isCurrent(at: number, lengthsMs: readonly number[]): boolean {
    for (const meter of this.#meters) if (!runs(meter, at)) return false;
    for (const length of lengthsMs)
      if (!this.#meters.some(({ lengthMs }) => lengthMs === length)) return false;
    return true;
  }
}

/** A clock that was set back a little ends no window; one that was years ahead leaves none that lasts for years. */
function runs({ begunAt, lengthMs }: Meter, at: number): boolean {
  return Math.abs(at - begunAt) < lengthMs;
}

export function nothing(): Counts {
  return { max_execs: 0, max_runtime_ms: 0, max_egress_bytes: 0 };
}
