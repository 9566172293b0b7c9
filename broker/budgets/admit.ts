import type { WorldViolation } from "../../world/backend.ts";
import type { Broker } from "../broker.ts";
import type { Job } from "../job.ts";
import { type Refusal, refusal } from "../refusal.ts";
import type { SpanRecord } from "../spans/trace.ts";
import { type Order, type Shortage, termsOf } from "./budgets.ts";
import { whose, wordsOf } from "./exceeded.ts";
import { allowanceOf } from "./limits.ts";
import { exceeded } from "./exceeded.ts";

/** What a call gets when nobody says how long its command may run, in milliseconds (CONTRACT §3). */
const DEFAULT_TIMEOUT_MS = 120_000;

/** What a command may use. It is held until the line that closes its span, or until it is given back. */
export type Admission = {
  readonly timeoutMs: number;
  /** For the line that starts the span: from it everything can be counted again. */
  readonly fields: Pick<SpanRecord, "timeout_ms" | "budget">;
  /** What to say when the command is ended by its time-out: the budget that made it so short, if one did. */
  readonly cut: WorldViolation | undefined;
};

/** Reserves for a job, or says which budget does not reach. In observe mode too: a budget is no rule about commands. */
export function admit({ budgets }: Broker, job: Job): Admission | Refusal {
  const order = orderOf(job);
  const reserved = budgets.reserve(order);
  switch (reserved.kind) {
    case "short":
      return exceeded(job.agent, job.effective.id, reserved.shortage);
    case "crowded":
      return crowded(reserved.names);
    case "reserved": {
      const { timeoutMs, cut } = reserved;
      const fields = { timeout_ms: timeoutMs, ...budgetField(order) };
      return { timeoutMs, fields, cut: cut === undefined ? undefined : cutShort(job.agent, timeoutMs, cut) };
    }
  }
}

/** The terms of a call that was refused by a budget: what it named binds all the same. */
export function refusedTerms(job: Job): Pick<SpanRecord, "budget"> {
  return budgetField(orderOf(job));
}

function orderOf({ span, agent, request, effective }: Job): Order {
  return {
    span,
    agent,
    allowances: effective.policies.map(({ document }) => allowanceOf(document)),
    named: request.budget,
    timeoutMs: request.timeout_ms ?? DEFAULT_TIMEOUT_MS,
  };
}

function budgetField(order: Order): Pick<SpanRecord, "budget"> {
  const terms = termsOf(order);
  return Object.keys(terms).length === 0 ? {} : { budget: terms };
}

function cutShort(agent: string, timeoutMs: number, { spent }: Shortage): WorldViolation {
  const message = `The command was ended after ${timeoutMs} ms: ${whose(agent, spent)} had no more of ${wordsOf(spent)}`;
  return { kind: "limit", subject: spent.name, message };
}

function crowded(names: number): Refusal {
  return refusal(
    "busy",
    `Budgets are counted for ${names} names of agents already, and this is one more`,
    "Use a name that was used before",
    { retry_after_ms: 60_000 },
  );
}
