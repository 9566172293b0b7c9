/** Shows budgets to the operator, and resets them. */
import { isRefusal, quoted, type Refusal, refusal } from "../model/refusal.ts";
import type {
  BudgetAccount,
  BudgetLimits,
  BudgetName,
  BudgetReply,
  BudgetsReply,
  BudgetState,
} from "../../schemas/generated/types.ts";
import { assignedPolicy } from "../policies/assignment.ts";
import { type GroundNeeds, groundOf } from "../policies/judge.ts";
import type { Effective } from "../model/effective.ts";
import { type PlaceNeeds, placeOf } from "../project/request.ts";
import { eventSpan } from "../spans/event-span.ts";
import type { Trace } from "../spans/trace.ts";
import { Account, type Gate } from "./account.ts";
import { type Budgets, givenBy } from "./budgets.ts";
import { SHARED } from "./ledger.ts";
import { allowanceOf, BUDGET_NAMES } from "./limits.ts";

/** The parts of the broker used for showing budgets. */
export type BudgetNeeds = PlaceNeeds &
  GroundNeeds & { readonly budgets: Budgets; readonly trace: Pick<Trace, "event"> };

/** Agent names (`schemas/shared`). */
const NAME = /^[A-Za-z0-9._:@-]{1,128}$/;

/**
 * Shows an agent's counts with the limits of its assigned policy, or with `cwd` the limits of the policies in force there.
 * `+shared` stands for all labels together.
 */
export function showBudget(broker: BudgetNeeds, name: string, cwd?: string): BudgetReply | Refusal {
  if (name !== SHARED && !NAME.test(name)) return noName(name);
  const effective = effectiveFor(broker, name, cwd);
  if (isRefusal(effective)) return effective;
  const isLabel = name !== SHARED && broker.budgets.ledger.isLabel(name);
  return {
    budget: accountOf(broker, name, effective),
    shared: isLabel ? accountOf(broker, SHARED, effective) : null,
  };
}

/** Lists every agent with counted use by name, then all labels together. */
export function showBudgets(broker: BudgetNeeds): BudgetsReply | Refusal {
  const agents = broker.budgets.ledger.inUse().filter((name) => name !== SHARED);
  const budgets: BudgetAccount[] = [];
  for (const name of [...agents.sort(), SHARED]) {
    const effective = effectiveFor(broker, name, undefined);
    if (isRefusal(effective)) return effective;
    budgets.push(accountOf(broker, name, effective));
  }
  return { budgets };
}

/** Resets an agent's counts and the limits lowered by its calls. Amounts reserved by running commands stay reserved. */
export function resetBudget(broker: BudgetNeeds, name: string): BudgetReply | Refusal {
  if (name !== SHARED && !NAME.test(name)) return noName(name);
  const message = `An operator reset the budgets of ${name === SHARED ? "all labels together" : `agent '${name}'`}`;
  const agent = name === SHARED ? null : name;
  broker.trace.event(eventSpan({ event_type: "rate_limit", agent_id: agent, message, budget_reset: name }));
  return showBudget(broker, name);
}

function effectiveFor(broker: BudgetNeeds, name: string, cwd: string | undefined): Effective | Refusal {
  const agent = name === SHARED ? "" : name;
  if (cwd === undefined) {
    const config = broker.config();
    const assigned = assignedPolicy(config, broker.listed.of(config), agent, "/");
    return broker.policies.effective(assigned, []);
  }
  const place = placeOf(broker, cwd);
  if (isRefusal(place)) return place;
  const ground = groundOf(broker, agent, place, undefined);
  return isRefusal(ground) ? ground : ground.effective;
}

function accountOf(broker: BudgetNeeds, name: string, effective: Effective): BudgetAccount {
  const { ledger } = broker.budgets;
  const account = ledger.find(name) ?? new Account();
  const allowances = effective.policies.map(({ document }) => allowanceOf(document));
  const given = givenBy(allowances, name === SHARED ? "shared" : "own");
  const gates = account.gates(given, Date.now());
  return {
    agent_id: name,
    kind: name === SHARED ? "shared" : ledger.isLabel(name) ? "label" : "agent",
    policy_id: effective.id,
    windows: gates
      .filter((gate) => concerns(gate, given))
      .map((gate) => windowOf(account, gate, given.get(gate.lengthMs) ?? {})),
  };
}

/** Whether to show a window: a window without limits only counts. */
function concerns({ lengthMs, lowered }: Gate, given: ReadonlyMap<number, unknown>): boolean {
  return given.has(lengthMs) || Object.keys(lowered).length > 0;
}

function windowOf(account: Account, gate: Gate, given: BudgetLimits): BudgetAccount["windows"][number] {
  const { begunAt, lengthMs } = gate;
  return {
    length_ms: lengthMs,
    began_at: begunAt === undefined ? null : new Date(begunAt).toISOString(),
    ends_at: begunAt === undefined ? null : new Date(begunAt + lengthMs).toISOString(),
    budgets: BUDGET_NAMES.map((name) => stateOf(account, gate, given, name)),
  };
}

function stateOf(account: Account, gate: Gate, given: BudgetLimits, name: BudgetName): BudgetState {
  const limit = gate.limits[name] ?? null;
  return {
    name,
    limit,
    used: Math.ceil(gate.used[name]),
    reserved: Math.ceil(account.reserved[name]),
    lowered: limit !== null && limit < (given[name] ?? Number.POSITIVE_INFINITY),
  };
}

function noName(name: string): Refusal {
  return refusal(
    "invalid_request",
    `Cannot look up the budget of ${quoted(name)}: an agent has 1 to 128 letters, digits or . _ : @ -`,
    `Use the agent_id of a call, or ${SHARED} for all labels together`,
  );
}
