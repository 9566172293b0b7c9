/**
 * Reserves budget before use and settles afterwards. Each method runs within one turn of the event loop, so no calls interleave.
 */
import type { RootDatabase } from "lmdb";
import type { BudgetLimits, BudgetName, SpentBudget } from "../../schemas/generated/types.ts";
import type { Changes, Follower } from "../spans/follower.ts";
import type { SpanRecord } from "../spans/trace.ts";
import { type Account, type Gate, nothing } from "./account.ts";
import { type Clock, Ledger } from "./ledger.ts";
import { type Allowance, lowest, USUAL_WINDOW_MS } from "./limits.ts";

/** Bound on accounts: each agent name costs a kilobyte until its windows end. */
const MAX_ACCOUNTS = 100_000;

/** A command to be admitted. */
export type Order = {
  readonly span: string;
  readonly agent: string;
  /** The allowances of all policies in force; each policy limits. */
  readonly allowances: readonly Allowance[];
  /** The limits named by the call. */
  readonly named: BudgetLimits | undefined;
  /** Infinite for a command without a time limit. */
  readonly timeoutMs: number;
};

/** An exhausted budget, and when a retry can help. */
export type Shortage = {
  readonly spent: SpentBudget;
  readonly retryAfterMs: number | undefined;
  /** Whether a call named this limit. */
  readonly lowered: boolean;
};

/** Result of a reservation: the granted time, the exhausted budget, or no room for another agent name. */
export type Reserved =
  | { readonly kind: "reserved"; readonly timeoutMs: number; readonly cut: Shortage | undefined }
  | { readonly kind: "short"; readonly shortage: Shortage }
  | { readonly kind: "crowded"; readonly names: number };

type Held = {
  readonly order: Order;
  readonly accounts: readonly Account[];
  readonly amounts: Record<BudgetName, number>;
};

type Limited = { readonly account: Account; readonly gate: Gate; readonly shared: boolean };

/** Run time reserved at once for a command without a time limit, in milliseconds: reserving all would leave none for others. */
export const SLICE_MS = 60_000;

/** Retry delay while reserved amounts may still be given back. */
export const SOON_MS = 1000;

/** Budgets that refuse commands when exhausted. The byte budget refuses at the time of sending. */
const OF_COMMANDS: readonly BudgetName[] = ["max_execs", "max_runtime_ms"];

export class Budgets implements Follower {
  readonly ledger: Ledger;
  readonly #now: Clock;
  readonly #held = new Map<string, Held>();

  constructor(isLabel: (agent: string) => boolean, now: Clock = Date.now) {
    this.ledger = new Ledger(isLabel, now);
    this.#now = now;
  }

  /**
   * Reserves one execution and the run time up to the time-out, or as much as is left; without a time limit, reserves a slice to
   * be extended by {@link extend}. The call's own limits take effect.
   */
  reserve(order: Order): Reserved {
    if (!this.#hasRoomFor(order.agent)) return { kind: "crowded", names: this.ledger.size };
    const now = this.#now();
    this.ledger.lower(order.agent, termsOf(order), now);
    const limited = this.#limits(order, now);
    const short = OF_COMMANDS.map((name) => spentOf(limited, name, now)).find((spent) => spent !== undefined);
    if (short !== undefined) return { kind: "short", shortage: short };
    const tightest = narrowest(limited, "max_runtime_ms");
    const left = Math.floor(roomOf(tightest, "max_runtime_ms"));
    const wanted = Number.isFinite(order.timeoutMs) ? order.timeoutMs : SLICE_MS;
    const timeoutMs = Math.min(wanted, left);
    this.#hold(order, timeoutMs);
    const isCut = tightest !== undefined && timeoutMs < wanted;
    return {
      kind: "reserved",
      timeoutMs,
      cut: isCut ? shortage(tightest, "max_runtime_ms", now) : undefined,
    };
  }

  /** Reserves another slice for a running call. Returns its milliseconds, or the exhausted budget; 0 for an unknown call. */
  extend(span: string): number | Shortage {
    const held = this.#held.get(span);
    if (held === undefined) return 0;
    const now = this.#now();
    const tightest = narrowest(this.#limits(held.order, now), "max_runtime_ms");
    const more = Math.min(SLICE_MS, Math.floor(roomOf(tightest, "max_runtime_ms")));
    if (tightest !== undefined && more < 1) return shortage(tightest, "max_runtime_ms", now);
    add(held, "max_runtime_ms", more);
    return more;
  }

  /** Whether an agent's byte budget is exhausted: its connections are then refused, while its commands go on. */
  hasSentAll(agent: string, allowances: readonly Allowance[]): boolean {
    const limited = this.#limits({ agent, allowances }, this.#now());
    return roomOf(narrowest(limited, "max_egress_bytes"), "max_egress_bytes") < 1;
  }

  /** Opens a connection's reservation of bytes, until given back. Each reservation uses the limits of that moment. */
  openConnection(id: string, agent: string, allowances: () => readonly Allowance[]): void {
    const order = {
      span: id,
      agent,
      get allowances() {
        return allowances();
      },
      named: undefined,
      timeoutMs: 0,
    };
    this.#holds(order);
  }

  /** Gives back all amounts still held for a call, if any. */
  giveBack(span: string): void {
    const held = this.#held.get(span);
    if (held === undefined) return;
    this.#held.delete(span);
    for (const account of held.accounts) account.holders -= 1;
    for (const account of held.accounts)
      for (const name of Object.keys(held.amounts) as BudgetName[])
        account.reserved[name] -= held.amounts[name];
  }

  /**
   * Reserves at most `wanted` bytes before sending. Returns the granted number; 0 for an exhausted budget or an unknown
   * connection.
   */
  reserveBytes(id: string, wanted: number): number {
    const held = this.#held.get(id);
    if (held === undefined) return 0;
    const tightest = narrowest(this.#limits(held.order, this.#now()), "max_egress_bytes");
    const granted = Math.floor(Math.min(wanted, roomOf(tightest, "max_egress_bytes")));
    add(held, "max_egress_bytes", granted);
    return granted;
  }

  /** Gives back the unsent bytes. Sent bytes stay reserved until the connection's trace line records them. */
  settleBytes(id: string, granted: number, sent: number): void {
    const held = this.#held.get(id);
    if (held !== undefined) add(held, "max_egress_bytes", sent - granted);
  }

  open(database: RootDatabase): void {
    this.ledger.open(database);
  }

  /** Moves amounts stated by a line from reserved to used within one turn, so that no amount is counted twice or missed. */
  note(line: SpanRecord): void {
    this.ledger.note(line);
    if (line.event_type === "command_complete" || line.event_type === "connection")
      this.giveBack(line.span_id);
    if (line.event_type !== "command_start") return;
    const held = this.#held.get(line.span_id);
    if (held !== undefined) add(held, "max_execs", -held.amounts.max_execs);
  }

  changes(): Changes {
    return this.ledger.changes();
  }

  needs(): number {
    return this.ledger.needs();
  }

  #hasRoomFor(agent: string): boolean {
    // Agents with a socket are few, because settings name each; made-up labels must not crowd them out.
    if (!this.ledger.isLabel(agent) || this.ledger.find(agent) !== undefined) return true;
    if (this.ledger.size < MAX_ACCOUNTS) return true;
    this.ledger.sweep();
    return this.ledger.size < MAX_ACCOUNTS;
  }

  #hold(order: Order, timeoutMs: number): void {
    const held = this.#holds(order);
    add(held, "max_execs", 1);
    add(held, "max_runtime_ms", timeoutMs);
  }

  #holds(order: Order): Held {
    const held = { order, accounts: this.ledger.accountsOf(order.agent), amounts: nothing() };
    for (const account of held.accounts) account.holders += 1;
    this.#held.set(order.span, held);
    return held;
  }

  #limits({ agent, allowances }: Pick<Order, "agent" | "allowances">, now: number): readonly Limited[] {
    const [own, all] = this.ledger.accountsOf(agent);
    return [
      ...limitedBy(own, givenBy(allowances, "own"), now, false),
      ...limitedBy(all, givenBy(allowances, "shared"), now, true),
    ];
  }
}

/** Returns a call's windows and limits for its trace line, for rebuilding the counts. Empty in the usual case. */
export function termsOf({ allowances, named }: Pick<Order, "allowances" | "named">): {
  readonly windows_ms?: number[];
  readonly named?: BudgetLimits;
} {
  const lengths = [...new Set(allowances.map(({ windowMs }) => windowMs))];
  const areUsual = lengths.every((length) => length === USUAL_WINDOW_MS);
  return {
    ...(areUsual ? {} : { windows_ms: lengths }),
    ...(named === undefined ? {} : { named }),
  };
}

/** Groups the limits by window length; for equal lengths, the lower limits win. */
export function givenBy(
  allowances: readonly Allowance[],
  whose: "own" | "shared",
): ReadonlyMap<number, BudgetLimits> {
  const given = new Map<number, BudgetLimits>();
  for (const allowance of allowances)
    given.set(allowance.windowMs, lowest(given.get(allowance.windowMs) ?? {}, allowance[whose]));
  return given;
}

function limitedBy(
  account: Account | undefined,
  given: ReadonlyMap<number, BudgetLimits>,
  now: number,
  shared: boolean,
): readonly Limited[] {
  return account === undefined ? [] : account.gates(given, now).map((gate) => ({ account, gate, shared }));
}

function narrowest(limited: readonly Limited[], name: BudgetName): Limited | undefined {
  const bounded = limited.filter(({ gate }) => gate.limits[name] !== undefined);
  return bounded.sort(
    (one, other) => one.account.room(one.gate, name) - other.account.room(other.gate, name),
  )[0];
}

function roomOf(limited: Limited | undefined, name: BudgetName): number {
  return limited === undefined ? Number.POSITIVE_INFINITY : limited.account.room(limited.gate, name);
}

/** Picks the exhausted limit that lasts longest: after waiting for another, the caller would only meet this limit. */
function spentOf(limited: readonly Limited[], name: BudgetName, now: number): Shortage | undefined {
  const spent = limited.filter(({ account, gate }) => account.room(gate, name) < 1);
  const shortages = spent.map((each) => shortage(each, name, now));
  const lasts = ({ retryAfterMs }: Shortage): number => retryAfterMs ?? Number.MAX_VALUE;
  return shortages.sort((one, other) => lasts(other) - lasts(one))[0];
}

function add(held: Held, name: BudgetName, amount: number): void {
  held.amounts[name] += amount;
  for (const account of held.accounts) account.reserved[name] += amount;
}

function shortage({ account, gate, shared }: Limited, name: BudgetName, now: number): Shortage {
  const limit = gate.limits[name] ?? 0;
  const endsAt = gate.begunAt === undefined ? undefined : gate.begunAt + gate.lengthMs;
  const untilEnd = endsAt === undefined ? undefined : Math.max(0, endsAt - now);
  const mayComeBack = account.reserved[name] > 0 && gate.used[name] < limit;
  return {
    spent: {
      name,
      limit,
      used: Math.ceil(gate.used[name] + account.reserved[name]),
      shared,
      ...(endsAt === undefined ? {} : { resets_at: new Date(endsAt).toISOString() }),
    },
    lowered: gate.lowered[name] === limit,
    retryAfterMs: mayComeBack ? Math.min(SOON_MS, untilEnd ?? SOON_MS) : untilEnd,
  };
}
