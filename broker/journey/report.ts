/**
 * Reports of shims about programs outside every world. The broker decides each start by the same rules as a command, so the
 * question and the record agree; a reported program is not run, isolated or charged by the broker. A program that must be isolated
 * does not start there: its shim sends it as a command.
 */
import { cannotRecord, isRefusal, quoted, type Refusal, refusal, stopping } from "../model/refusal.ts";
import { constants } from "node:os";
import type { ExecuteRequest, ReportReply, ReportRequest } from "../../schemas/generated/types.ts";
import { approved, mustAsk } from "./approve.ts";
import type { Broker } from "../broker.ts";
import { type Job, willBeIsolated } from "../model/job.ts";
import { isReadable } from "../policy/index.ts";
import { prepareJob } from "./prepare-job.ts";
import { refuseByDecision } from "./refuse-by-decision.ts";
import { ON_HOST, placeOf } from "../project/request.ts";
import { refusedSpan } from "../spans/span-records.ts";
import { recordUnjudged } from "./unjudged.ts";
import { shimSpan } from "../shims/shim-span.ts";

/** A shim waiting for an answer. */
export type Asking = {
  /** Aborts when the shim has gone: pending questions for the shim are withdrawn. */
  readonly gone: AbortSignal;
  /** Tells the shim about a pending approval, because a person takes longer than a shim's time-out for the broker. */
  readonly waits: () => void;
};

export async function report(
  broker: Broker,
  agent: string,
  request: ReportRequest,
  asking: Asking,
): Promise<ReportReply | Refusal> {
  const { argv, span_id: span } = request;
  if (argv === undefined) return ended(broker, agent, span ?? "", request);
  const starting = broker.activity.during(() => starts(broker, agent, { ...request, argv }, asking));
  return await (starting ?? stopping());
}

async function starts(
  broker: Broker,
  agent: string,
  request: ReportRequest & { readonly argv: NonNullable<ReportRequest["argv"]> },
  asking: Asking,
): Promise<ReportReply | Refusal> {
  const call = callOf(agent, request);
  const asked = prepareJob(broker, agent, call, ON_HOST);
  if (isRefusal(asked))
    return recordUnjudged(broker, { agent, request: call, how: ON_HOST, component: "shim" }, asked);
  if (request.bypass === true) return await begin(broker, asked, BYPASSED);
  const denial = refuseUnread(asked, request) ?? refuseByDecision(asked);
  if (denial !== undefined) return refuse(broker, asked, denial);
  if (mustAsk(asked)) asking.waits();
  if (willBeIsolated(asked)) return isolate(broker, asked);
  const job = mustAsk(asked) ? await approved(broker, asked, asking.gone) : asked;
  if (isRefusal(job)) return refuse(broker, asked, job);
  return await begin(broker, job, undefined);
}

/**
 * Sends the shim to `/v1/stream`: a program on the host cannot be isolated. That call judges, asks and records by itself, so a
 * person is asked once and one span stands for the command.
 */
function isolate(broker: Broker, asked: Job): ReportReply | Refusal {
  const place = placeOf(broker, asked.request.cwd);
  if (isRefusal(place)) return refuse(broker, asked, { ...place, exit: 126 });
  return { verdict: "isolate" };
}

const BYPASSED = "SHIM_BYPASS=1: the program started without asking the policy";

function callOf(
  agent: string,
  { argv, cwd, env, profile, parent_span, approval_wait_ms }: ReportRequest,
): ExecuteRequest {
  return {
    agent_id: agent,
    argv,
    ...(cwd === undefined ? {} : { cwd }),
    ...(env === undefined ? {} : { env }),
    ...(profile === undefined ? {} : { profile }),
    ...(parent_span === undefined ? {} : { parent_span }),
    ...(approval_wait_ms === undefined ? {} : { approval_wait_ms }),
  } as ExecuteRequest;
}

/** Refuses unreadable words even where the policy allows unknown commands: no rule has read these words. */
function refuseUnread(
  { argv, decision: { mode, policyId } }: Job,
  { left_out }: ReportRequest,
): Refusal | undefined {
  if (mode !== "enforce" || (left_out === undefined && isReadable(argv))) return undefined;
  return refusal(
    "policy_denied",
    `Policy '${policyId}' denies this command: its words or its PATH are too long to be checked`,
    "Pass fewer words at a time (xargs -n) or fewer variables, or let the program read them from a file",
    { exit: 126, policy_id: policyId, rule: null },
  );
}

async function begin(broker: Broker, job: Job, message: string | undefined): Promise<ReportReply | Refusal> {
  const started = shimSpan(job, message);
  try {
    await broker.trace.start(started);
  } catch (error) {
    broker.trace.closeFailed(started, error);
    return cannotRecord("Nothing ran", error);
  }
  broker.shims.runs.began(started);
  return { span_id: started.span_id };
}

function refuse(broker: Broker, job: Job, error: Refusal): Refusal {
  try {
    broker.trace.event({ ...refusedSpan(job, error), component: "shim" });
    return { ...error, span_id: job.span };
  } catch (fault) {
    return cannotRecord("Nothing ran", fault);
  }
}

function ended(
  broker: Broker,
  agent: string,
  span: string,
  { exit, signal }: ReportRequest,
): ReportReply | Refusal {
  const run = broker.shims.runs.take(span, agent);
  if (run === undefined) {
    return refusal(
      "not_found",
      `Unknown span ${quoted(span)}: this agent has no running program with it behind a shim`,
      "Report each end once, to the broker that received the start",
    );
  }
  const by = signal ?? null;
  broker.trace.close({
    ...run.started,
    ts: new Date().toISOString(),
    event_type: "command_complete",
    outcome: "ended",
    exit: exit ?? (by === null ? null : 128 + by),
    signal: by === null ? null : nameOf(by),
    duration_ms: run.duration(),
    ...(exit === undefined || (exit === null && by === null) ? { message: UNKNOWN } : {}),
  });
  return { span_id: span };
}

const UNKNOWN = "The exit code is unknown: before Linux 6.15 only the program's parent learns it";

function nameOf(number: number): string {
  return Object.entries(constants.signals).find(([, each]) => each === number)?.[0] ?? `SIG${number}`;
}

/**
 * Closes the span of a start whose shim went away before the answer, by a time-out or a kill. No other report would close the
 * span, because the shim itself starts the process that reports the end. An already closed span stays unchanged.
 */
export function closeUnanswered(broker: Broker, agent: string, span: string): void {
  const run = broker.shims.runs.take(span, agent);
  if (run === undefined) return;
  const { message } = run.started;
  broker.trace.close({
    ...run.started,
    ts: new Date().toISOString(),
    event_type: "command_complete",
    outcome: "cancelled",
    duration_ms: run.duration(),
    message: message === undefined || message === null ? NOT_STARTED : `${message}; ${PERHAPS_STARTED}`,
  });
}

const NOT_STARTED = "The shim ended before the answer, so nothing was started";

/** A bypassing shim starts its program without waiting for an answer. */
const PERHAPS_STARTED = "the shim ended before the answer, and may have started the program";
