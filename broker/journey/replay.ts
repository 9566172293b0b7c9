/**
 * Replays a recorded command in a fresh world, on an overlay of the project that is then discarded, under today's rules, and
 * compares the result with the record. A replay takes the same journey as every other command, so the same guarantees apply.
 */
import { isRefusal, type Refusal, refusal } from "../model/refusal.ts";
import type { ReplayReply, ReplayRequest, Span } from "../../schemas/generated/types.ts";
import type { Broker } from "../broker.ts";
import { proceed } from "./execute.ts";
import type { Variables } from "../model/environment.ts";
import type { Job } from "../model/job.ts";
import { redact, secretsIn } from "../secrets/redact.ts";
import { localeOf } from "../spans/replay-context.ts";
import { type ChangedFiles, changedFiles, Patience } from "../replay/compare-changes.ts";
import { compareChanges } from "../replay/compare-changes.ts";
import { driftOf, type Found } from "../replay/drift.ts";
import { filesDrift, sinceWhen, unseenFiles } from "../replay/drift.ts";
import { compareOutputs } from "../replay/compare-outputs.ts";
import { recordedOf } from "../replay/recorded.ts";
import { replayJob, type Under } from "./replay-job.ts";
import { tellable } from "../replay/drift.ts";

/**
 * How long the file search may continue after the command has ended, in milliseconds: little time when all results match, more
 * time when a difference needs an explanation.
 */
const LATE_MS = 5;
const EXPLAIN_MS = 1000;

/** `isOperator`: whether the caller may replace the assigned policy by any other. */
export async function replay(
  broker: Broker,
  span: Span,
  request: ReplayRequest,
  isOperator: boolean,
  signal: AbortSignal,
): Promise<ReplayReply | Refusal> {
  const recorded = recordedOf(span, request);
  if (isRefusal(recorded)) return recorded;
  const job = replayJob(broker, recorded, underOf(request.policy, isOperator));
  if (isRefusal(job)) return job;
  const patience = new Patience();
  const { project } = job.place;
  const mayTell = tellable(job.effective, project, broker.around.home);
  const looking = changedFiles({ project, since: sinceWhen(span), mayTell }, patience);
  const ran = await runAgain(broker, span, job, signal).finally(() => patience.for(LATE_MS));
  if (isRefusal(ran)) return ran;
  if (!isSame(ran.compared)) patience.for(EXPLAIN_MS);
  const changed = await looking;
  return {
    ...ran.compared,
    drift: [...driftOf(span, ran.now, foundBy(job, stateNow(span, changed))), ...filesDrift(span, changed)],
    notes: [...ran.compared.notes, ...unseenFiles(changed)],
  };
}

type Compared = Omit<ReplayReply, "drift">;

async function runAgain(
  broker: Broker,
  span: Span,
  job: Job,
  signal: AbortSignal,
): Promise<{ readonly now: Span; readonly compared: Compared } | Refusal> {
  const outcome = await proceed(broker, job, signal);
  if (outcome.kind === "refused") return outcome.error;
  // Nobody reads the replay's outputs: release their memory.
  outcome.sent?.();
  const now = broker.trace.find(job.span);
  if (now === undefined) return lost(job);
  if (now.event_type !== "command_complete") return notYet(job);
  return { now, compared: await comparison(broker, span, now) };
}

function isSame({ matches }: Compared): boolean {
  return !Object.values(matches).includes(false);
}

function underOf(policy: string | undefined, isOperator: boolean): Under {
  if (policy === undefined) return { kind: "today" };
  return { kind: isOperator ? "instead" : "narrowed", policy };
}

/**
 * The state of the files when the command began. A span's recorded state is slightly older than its command; if the search was
 * complete and found no change since the command began, the recorded state is used, whatever was edited in between.
 */
function stateNow(
  { replay_context: context }: Span,
  { complete, unread, paths, state }: ChangedFiles,
): string | null {
  return complete && unread === 0 && paths.length === 0 ? (context?.dirty_hash ?? null) : state;
}

/** The environment that an ordinary command would get today. */
function foundBy({ replays }: Job, dirtyHash: string | null): Found {
  const { today = {} } = replays ?? {};
  return {
    path: shown(today["PATH"] ?? null, today),
    locale: shown(localeOf(today), today),
    dirty_hash: dirtyHash,
  };
}

/** Redacts a value as spans do. */
function shown(value: string | null, variables: Variables): string | null {
  return value === null ? null : redact(value, "drift", secretsIn(variables)).text;
}

async function comparison(broker: Broker, was: Span, is: Span): Promise<Compared> {
  const outputs = await compareOutputs(broker.outputSamples, was, is);
  const wroteItself = was.overlay === undefined;
  const changes = compareChanges(was.fs_diff, is.fs_diff, wroteItself);
  return {
    span_id: was.span_id,
    replay_span_id: is.span_id,
    matches: {
      exit: endOf(was) === endOf(is),
      stdout: outputs.stdout.matches,
      stderr: outputs.stderr.matches,
      fs_diff: changes.matches,
    },
    verdicts: { recorded: was.decision?.verdict ?? null, now: decisionOf(is).verdict },
    decisions: { recorded: was.decision, now: decisionOf(is) },
    results: { recorded: resultOf(was), now: resultOf(is) },
    differences: { stdout: outputs.stdout.diff, stderr: outputs.stderr.diff, fs_diff: changes.apart },
    notes: [
      ...outputs.notes,
      ...changes.notes,
      ...(changes.matches === false && wroteItself ? [WROTE_ITSELF] : []),
    ],
  };
}

const WROTE_ITSELF =
  "The command had written to the project directly, so the replay began with its files; a file written again with the same bytes is not a change";

function endOf({ exit, signal, timed_out: timedOut }: Span): string {
  return JSON.stringify([exit, signal ?? null, timedOut === true]);
}

/** Returns a command's decision. Throws for a span without a decision: every command that ran has one. */
function decisionOf({ decision, span_id: id }: Span): NonNullable<Span["decision"]> {
  if (decision === null) throw new Error(`Span ${id} of a command has no decision`);
  return decision;
}

function resultOf(span: Span): ReplayReply["results"]["now"] {
  return {
    policy_id: span.policy_id,
    policy_hash: span.policy_hash,
    exit: span.exit,
    signal: span.signal ?? null,
    timed_out: span.timed_out === true,
    duration_ms: span.duration_ms,
    stdout_sha256: span.stdout_sha256,
    stderr_sha256: span.stderr_sha256,
    fs_diff: span.fs_diff,
  };
}

/** The closing line is still waiting for disk space, and unrecorded results are not compared. */
function notYet({ span }: Job): Refusal {
  return refusal(
    "busy",
    "The replay ran, but its result is not available: the disk is too full to record it",
    "Free space where SUBSTRATE_HOME lies, then replay again",
    { span_id: span },
  );
}

function lost({ span }: Job): Refusal {
  return refusal(
    "internal",
    `The replay ran, but its span ${span} cannot be read`,
    "See the broker's log ('substrate broker logs')",
    { span_id: span },
  );
}
