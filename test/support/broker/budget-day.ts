import type { Meter } from "../../../broker/budgets/account.ts";
import type { Allowance } from "../../../broker/budgets/limits.ts";
import { Budgets, type Order, termsOf } from "../../../broker/budgets/budgets.ts";
import type { Ledger } from "../../../broker/budgets/ledger.ts";
import { eventSpan } from "../../../broker/spans/event-span.ts";
import type { SpanRecord } from "../../../broker/spans/trace.ts";

export const HOUR = 3_600_000;
export const START = Date.parse("2026-01-01T00:00:00.000Z");
export const NAMED = "named";

/** A ledger's day: calls that come and go, and the lines they leave. */
export class Day {
  now = START;
  readonly lines: SpanRecord[] = [];
  readonly budgets = new Budgets(isLabel, () => this.now);
  readonly #orders = new Map<string, Order>();

  reserve(order: Partial<Order> & { readonly span: string }): ReturnType<Budgets["reserve"]> {
    const whole = { agent: "ann", allowances: [], named: undefined, timeoutMs: 1000, ...order };
    this.#orders.set(whole.span, whole);
    return this.budgets.reserve(whole);
  }

  start(span: string): void {
    this.#write(span, { event_type: "command_start" });
  }

  end(span: string, facts: Partial<SpanRecord>): void {
    this.#write(span, { event_type: "command_complete", outcome: "ended", ...facts });
  }

  #write(span: string, facts: Pick<SpanRecord, "event_type"> & Partial<SpanRecord>): void {
    const order = this.#orders.get(span);
    if (order === undefined) throw new Error(`No order for '${span}'`);
    const ts = new Date(this.now).toISOString();
    const line = eventSpan({ ts, span_id: span, agent_id: order.agent, budget: termsOf(order), ...facts });
    this.lines.push(line);
    this.budgets.note(line);
  }
}

export function isLabel(agent: string): boolean {
  return agent !== NAMED;
}

/** An account's windows in an order that does not depend on which was begun first. */
export function byLength(ledger: Ledger, name: string): readonly Meter[] {
  return [...ledger.account(name).meters()].sort((one, other) => one.lengthMs - other.lengthMs);
}

export function giving(own: Allowance["own"], shared: Allowance["shared"] = {}, windowMs = HOUR): Allowance {
  return { windowMs, own, shared };
}
