import type { WorldViolation } from "../../world/backend.ts";
import type { Broker } from "../broker.ts";
import { sharesHostNetwork } from "../model/effective.ts";
import type { Job } from "../model/job.ts";
import { type Refusal, refusal } from "../model/refusal.ts";
import type { SpanRecord } from "../spans/trace.ts";
import { type Order, type Reserved, type Shortage, termsOf } from "../budgets/budgets.ts";
import { whose, wordsOf } from "../budgets/exceeded.ts";
import { allowanceOf } from "../budgets/limits.ts";
import { exceeded } from "../budgets/exceeded.ts";
import { TIME_LIMIT, type TimeLimit, timeLimitOf } from "../budgets/time-limit.ts";

/** A command's reservation from the budgets, held until the line that closes the command's span, or until given back. */
export type Admission = {
  readonly timeoutMs: number;
  /** Milliseconds to add when the command's time is over; 0 ends the command. */
  readonly more: () => number;
  /** Fields for the span's start line; a lost budget count is rebuilt from these fields. */
  readonly fields: Pick<SpanRecord, "timeout_ms" | "budget">;
  /** The reason for ending the command at its time-out. */
  readonly ended: () => TimeOver;
};

/** A limit set by the operator leaves a violation span; a time-out chosen by the call itself is only reported. */
export type TimeOver =
  | { readonly kind: "limit"; readonly violation: WorldViolation }
  | { readonly kind: "own"; readonly message: string };

/** Reserves budget for a job, or refuses with the exhausted budget. Also in observe mode: a budget is no rule about commands. */
export function admit({ budgets }: Broker, job: Job): Admission | Refusal {
  const { request, effective } = job;
  if (request.budget?.max_egress_bytes !== undefined && sharesHostNetwork(effective.policies))
    return uncounted(effective.id);
  const limit = timeLimitOf(request, effective.policies);
  const order = orderOf(job, limit);
  const reserved = budgets.reserve(order);
  switch (reserved.kind) {
    case "short":
      return exceeded(job.agent, job.effective.id, reserved.shortage);
    case "crowded":
      return crowded(reserved.names);
    case "reserved":
      return limit.by === "nobody"
        ? unlimited(budgets, job, order, reserved)
        : limited(job, order, reserved, limit);
  }
}

type HeldTime = Extract<Reserved, { readonly kind: "reserved" }>;

function limited({ agent }: Job, order: Order, { timeoutMs, cut }: HeldTime, limit: TimeLimit): Admission {
  return {
    timeoutMs,
    more: () => 0,
    fields: { timeout_ms: timeoutMs, ...budgetField(order) },
    ended: () => (cut === undefined ? timeOver(limit) : cutShort(agent, timeoutMs, cut)),
  };
}

/** Admits a command without a time limit: the budgets lend run time slice by slice until a run-time budget is used up. */
function unlimited(
  budgets: Broker["budgets"],
  { agent, span }: Job,
  order: Order,
  { timeoutMs }: HeldTime,
): Admission {
  let held = timeoutMs;
  let over: Shortage | undefined;
  return {
    timeoutMs,
    more: () => {
      const more = budgets.extend(span);
      if (typeof more !== "number") over = more;
      else held += more;
      return typeof more === "number" ? more : 0;
    },
    fields: budgetField(order),
    ended: () =>
      over === undefined
        ? {
            kind: "own",
            message: `The command was ended after ${held} ms: its reserved run time was used up`,
          }
        : cutShort(agent, held, over),
  };
}

function timeOver({ by, ended: message }: TimeLimit): TimeOver {
  return by === "policy"
    ? { kind: "limit", violation: { kind: "limit", subject: TIME_LIMIT, message } }
    : { kind: "own", message };
}

/** The span fields of a call refused by a budget: the limits named by the call bind even then. */
export function refusedTerms(job: Job): Pick<SpanRecord, "budget"> {
  return budgetField(orderOf(job, timeLimitOf(job.request, job.effective.policies)));
}

function orderOf({ span, agent, request, effective }: Job, { ms }: TimeLimit): Order {
  return {
    span,
    agent,
    allowances: effective.policies.map(({ document }) => allowanceOf(document)),
    named: request.budget,
    timeoutMs: ms,
  };
}

function budgetField(order: Order): Pick<SpanRecord, "budget"> {
  const terms = termsOf(order);
  return Object.keys(terms).length === 0 ? {} : { budget: terms };
}

function cutShort(agent: string, timeoutMs: number, { spent }: Shortage): TimeOver {
  const message = `The command was ended after ${timeoutMs} ms: ${whose(agent, spent)} had used up ${wordsOf(spent)}`;
  return { kind: "limit", violation: { kind: "limit", subject: spent.name, message } };
}

function uncounted(policy: string): Refusal {
  return refusal(
    "invalid_request",
    `Cannot keep budget.max_egress_bytes: policy '${policy}' gives commands the host's network (world.isolate_network: false), where no byte is counted`,
    "Leave the limit out, or use a policy that isolates the network",
  );
}

function crowded(names: number): Refusal {
  return refusal(
    "busy",
    `Cannot count a budget for another agent name: ${names} names have one already`,
    "Use a name that was used before",
    { retry_after_ms: 60_000 },
  );
}
