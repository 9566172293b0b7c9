/** Reserving before, settling after. Everything here is done within one turn of the event loop, so nothing comes between. */
import type { RootDatabase } from "lmdb";
import type { BudgetLimits, BudgetName, SpentBudget } from "../../schemas/generated/types.ts";
import type { Changes, Follower } from "../spans/follower.ts";
import type { SpanRecord } from "../spans/trace.ts";
import { type Account, type Gate, nothing } from "./account.ts";
import { type Clock, Ledger } from "./ledger.ts";
import { type Allowance, lowest, USUAL_WINDOW_MS } from "./limits.ts";

/** Each name costs a kilobyte until its windows end. */
const MAX_ACCOUNTS = 100_000;

/** A command that wants to run. */
export type Order = {
  readonly span: string;
  readonly agent: string;
  /** One for each policy that holds; all of them limit. */
  readonly allowances: readonly Allowance[];
  /** The limits that the call names. */
  readonly named: BudgetLimits | undefined;
  /** Infinite: it has no limit of its own. */
  readonly timeoutMs: number;
};

/** A budget that does not reach, and when trying again can help. */
export type Shortage = {
  readonly spent: SpentBudget;
  readonly retryAfterMs: number | undefined;
  /** Whether a call named this limit. */
  readonly lowered: boolean;
};

/** How a reservation ends: with what it may use, short of a budget, or without room to count one more name. */
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

/** What a command without a time limit holds of the run time at once, in milliseconds: all of it would leave none for others. */
export const SLICE_MS = 60_000;

/** Something that is reserved but not used up may come back at any moment. */
export const SOON_MS = 1000;

/** The budgets that refuse a command when they are used up. Bytes are refused where they are to be sent. */
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
   * Holds one execution and run time until its time-out, or as much of it as is left; without a time limit a slice, which
   * {@link extend} makes longer. Binds to the limits it names.
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

  /** Holds another slice of run time for a running call: how many milliseconds, or the budget that has none left; 0 when nothing is held. */
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

  /** Whether an agent may send nothing more: its connections are refused, and its commands go on. */
  hasSentAll(agent: string, allowances: readonly Allowance[]): boolean {
    const limited = this.#limits({ agent, allowances }, this.#now());
    return roomOf(narrowest(limited, "max_egress_bytes"), "max_egress_bytes") < 1;
  }

  /** For a connection: from now on bytes can be reserved for it, until it is given back, by the limits of that moment. */
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
    this.#held.set(id, { order, accounts: this.ledger.accountsOf(agent), amounts: nothing() });
  }

  /** Gives back all that is still held for a call; nothing happens when nothing is. */
  giveBack(span: string): void {
    const held = this.#held.get(span);
    if (held === undefined) return;
    this.#held.delete(span);
    for (const account of held.accounts)
      for (const name of Object.keys(held.amounts) as BudgetName[])
        account.reserved[name] -= held.amounts[name];
  }

  /**
   * Takes at most `wanted` bytes of what may still be sent, before they are sent: how many the connection got; 0 when none
   * is left, or when no such connection is open.
   */
  reserveBytes(id: string, wanted: number): number {
    const held = this.#held.get(id);
    if (held === undefined) return 0;
    const tightest = narrowest(this.#limits(held.order, this.#now()), "max_egress_bytes");
    const granted = Math.floor(Math.min(wanted, roomOf(tightest, "max_egress_bytes")));
    add(held, "max_egress_bytes", granted);
    return granted;
  }

  /** Gives back what was reserved and not sent. What was sent is held until the connection's line states it. */
  settleBytes(id: string, granted: number, sent: number): void {
    const held = this.#held.get(id);
    if (held !== undefined) add(held, "max_egress_bytes", sent - granted);
  }

  open(database: RootDatabase): void {
    this.ledger.open(database);
  }

  /** What a line states is no longer held: within one turn, so that nothing counts twice or not at all. */
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
    // Settings name agents with a socket, so they are few; names that anybody makes up must not crowd them out.
    if (!this.ledger.isLabel(agent) || this.ledger.find(agent) !== undefined) return true;
    if (this.ledger.size < MAX_ACCOUNTS) return true;
    this.ledger.sweep();
    return this.ledger.size < MAX_ACCOUNTS;
  }

  #hold(order: Order, timeoutMs: number): void {
    const held = { order, accounts: this.ledger.accountsOf(order.agent), amounts: nothing() };
    this.#held.set(order.span, held);
    add(held, "max_execs", 1);
    add(held, "max_runtime_ms", timeoutMs);
  }

  #limits({ agent, allowances }: Pick<Order, "agent" | "allowances">, now: number): readonly Limited[] {
    const [own, all] = this.ledger.accountsOf(agent);
    return [
      ...limitedBy(own, givenBy(allowances, "own"), now, false),
      ...limitedBy(all, givenBy(allowances, "shared"), now, true),
    ];
  }
}

/** What a line says of a call's windows and limits, so that it can be counted again. Nothing in the usual case. */
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

/** The limits by length of window; where two policies have one length, the lower ones. */
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

/** Of all that do not reach the one that lasts longest: who waits for another one only meets this one then. */
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
