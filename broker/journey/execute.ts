/**
 * The journey of a command, step by step. Each step has its own file and returns the input of the next step, or a refusal that
 * ends the journey. Only bugs throw.
 */
import { isRefusal, type Refusal, refusal, stopping } from "../model/refusal.ts";
import { join } from "node:path";
import type { ExecuteRequest, FsDiff } from "../../schemas/generated/types.ts";
import { coverOf, type World } from "../../world/backend.ts";
import { approved, mustAsk } from "./approve.ts";
import { borrowWorld } from "./borrow-world.ts";
import type { Broker } from "../broker.ts";
import { type Admission, admit } from "./admit.ts";
import { watchGit } from "./git-watch.ts";
import { Witnesses } from "./witnesses.ts";
import { recordShortage } from "./record-shortage.ts";
import { cannotRecord } from "../model/refusal.ts";
import { missedByFailed, missedVariables } from "./caller-shell.ts";
import { changesOf } from "./changes.ts";
import { commandEnvironment } from "../settings/environment.ts";
import { jobGate } from "../exec-gate/job-gate.ts";
import { holdsChanges, isIsolated, type Job, scopesOfJob, secretsOfJob } from "../model/job.ts";
import { autoApply } from "./auto-apply.ts";
import type { LiveStart } from "../model/live.ts";
import { shellScript } from "../live/shell-script.ts";
import { ShellLines } from "./shell-lines.ts";
import { lookFirst } from "../held/first-look.ts";
import { heldHint } from "../held/hint.ts";
import { besideWords, unseenWords } from "../held/unseen.ts";
import { setIdWords } from "../project/set-id-files.ts";
import { Notices } from "./notices.ts";
import { staleWords } from "./stale-words.ts";
import type { Outcome } from "../model/outcome.ts";
import { prepareJob } from "./prepare-job.ts";
import { type How, IN_WORLD } from "../project/request.ts";
import { refuseByDecision } from "./refuse-by-decision.ts";
import { replyOf } from "./reply-of.ts";
import { beginState, keepState, type Launch, launchOf } from "./resume.ts";
import type { Reported } from "../live/state-script.ts";
import { type RunRequest, runInWorld } from "../worlds/run.ts";
import type { SpanRecord } from "../spans/trace.ts";
import { builtinSpans, certaintiesOf, completedSpan } from "./completed-span.ts";
import { refusedSpan, startedSpan, violationSpan, warningSpans } from "../spans/span-records.ts";
import { recordUnjudged } from "./unjudged.ts";
import { explainWrite, writeRules } from "./refused-writes.ts";
import type { Lease } from "../worlds/worlds.ts";
import {
  closedPortWords,
  failedConnectionWords,
  leftWords,
  noRoomWords,
  processWords,
  saidBy,
  whyFailed,
} from "./why-failed.ts";

/** Decides, runs and records one command. `signal` aborts when the caller has disconnected. */
export async function execute(
  broker: Broker,
  agent: string,
  request: ExecuteRequest,
  signal: AbortSignal,
  how: How = IN_WORLD,
): Promise<Outcome> {
  const outcome = broker.activity.during(() => journey(broker, agent, request, signal, how));
  return outcome === undefined ? refused(stopping()) : await outcome;
}

async function journey(
  broker: Broker,
  agent: string,
  request: ExecuteRequest,
  signal: AbortSignal,
  how: How,
): Promise<Outcome> {
  const job = prepareJob(broker, agent, request, how);
  if (isRefusal(job))
    return refused(recordUnjudged(broker, { agent, request, how, component: "broker" }, job));
  const { idempotency: identity, effective } = job;
  if (identity === undefined) return await proceed(broker, job, signal);
  const call = { identity, agent, policy: identity.policy ?? effective.hash };
  const outcome = await broker.idempotency.once(call, () => proceed(broker, job, signal));
  return outcome ?? (await journey(broker, agent, request, signal, how));
}

/** Takes a job through all remaining steps. */
export async function proceed(broker: Broker, asked: Job, signal: AbortSignal): Promise<Outcome> {
  const denial = refuseByScopes(asked) ?? refuseByDecision(asked);
  if (denial !== undefined) return recordRefusal(broker, asked, denial);

  // Reserve before asking a person: nobody should approve a command that cannot run, and a one-time approval would be lost.
  const admission = admit(broker, asked);
  if (isRefusal(admission)) return recordRefusal(broker, asked, admission);
  try {
    const job = mustAsk(asked) ? await approved(broker, asked, signal) : asked;
    return isRefusal(job)
      ? recordRefusal(broker, asked, job)
      : await borrowAndRun(broker, job, admission, signal);
  } finally {
    broker.budgets.giveBack(asked.span);
  }
}

async function borrowAndRun(
  broker: Broker,
  job: Job,
  admission: Admission,
  signal: AbortSignal,
): Promise<Outcome> {
  const lease = await borrowWorld(broker, job);
  if (isRefusal(lease)) return recordRefusal(broker, job, lease);
  if (signal.aborted) {
    lease.release(false);
    return recordRefusal(broker, job, nobodyWaits());
  }
  return await runAndRecord(broker, job, admission, lease, signal);
}

async function runAndRecord(
  broker: Broker,
  job: Job,
  admission: Admission,
  lease: Lease,
  signal: AbortSignal,
): Promise<Outcome> {
  const { world } = lease;
  const { project } = job.place;
  const started = { ...startedSpan(job, world), ...admission.fields };
  const maxOutputBytes =
    job.live === undefined ? (job.request.max_output_bytes ?? 1024 * 1024) : liveKept(job.request);
  const room = broker.outputRoom.share(2 * maxOutputBytes);
  const notices = firstNotices(broker, job, lease);
  const write = (span: SpanRecord): void => {
    broker.trace.observe(span);
    notices.take(span);
  };
  const gate = jobGate(broker, job, { started, write, signal });
  let held = false;
  if (!isIsolated(job)) broker.dirtyFiles.began(project);
  try {
    const unrecorded = await recordStart(broker, started);
    if (unrecorded !== undefined) return refused(unrecorded);
    for (const span of warningSpans(job, started)) broker.trace.event(span);
    const writes = writeRules(broker, job, world);
    const witnesses = new Witnesses(broker, job, world, started, (one) => {
      if (one.kind === "denied_name") broker.movedTracked.add(project, one.subject);
      write(violationSpan(job, started, explainWrite(one, writes)));
    });
    const { violations, lacks } = witnesses;
    const git = watchGit(broker, job, world, witnesses.tell);
    let reported: Reported | undefined;
    const launch = launchOf(job, (one) => (reported = one));
    beginState(broker, job);
    const order = {
      ...runRequest(job, admission, launch),
      ...witnesses.listeners,
      ...git.listeners,
      gate: gate.programs,
      maxOutputBytes,
      room,
    };
    job.live?.started(
      startOf(job, world),
      job.live.promptWord === undefined ? undefined : new ShellLines(broker, job, started, notices),
    );
    const ran = await runInWorld(world, order, signal);
    for (const words of keepState(broker, job, ran, reported)) notices.takeSession(words);
    for (const span of builtinSpans(job, started, certaintiesOf(ran))) broker.trace.event(span);
    await gate.judged();
    await witnesses.settle(ran, job.request.background === "keep");
    const over = ran.timedOut ? admission.ended() : undefined;
    const cut = over?.kind === "limit" ? over.violation : undefined;
    if (cut !== undefined) violations.add(cut);
    if (over?.kind === "own") notices.takeTimeOver(over.message);
    const namespacesTold =
      world.spec.namespaces === "allow" || violations.told.some(({ kind }) => kind === "namespace");
    const sockets = (world.spec.sockets ?? []).map(({ name }) => name);
    const known = { lacks, writes, explained: notices.any, namespacesTold, sockets };
    // Without a world the policy's lists are not the cause of a failure.
    if (job.request.world !== "disabled") notices.takeFailure(whyFailed(job, ran, known));
    const unseen = broker.npmRetries.unseenBy(lacks.npmrcReaders, world.spec.files.denyRead);
    if (unseen !== undefined) notices.takePolicy(unseen);
    const failed = ran.ending.kind === "exited" && ran.ending.code !== 0;
    const missed = failed ? missedByFailed(job, saidBy(job, ran).toString("latin1")) : undefined;
    if (missed !== undefined) notices.takeSession(missed);
    const unreached = [...closedPortWords(job, ran), ...failedConnectionWords(job, ran, witnesses.network)];
    for (const words of unreached) notices.takeUnreached(words);
    const waiting = failed
      ? await unseenWords(broker, job.agent, project, saidBy(job, ran)).catch(() => undefined)
      : undefined;
    if (waiting !== undefined) notices.takeSession(waiting);
    for (const words of [...leftWords(ran), ...processWords(job, ran), ...noRoomWords(job, ran)])
      notices.takeSession(words);
    notices.takeObserved(witnesses.network?.observed ?? []);
    // Keep the overlay until the listing proves it unchanged.
    held = holdsChanges(job);
    const kept = await git.kept(await changesOf(job, world, ran));
    const deleted = broker.movedTracked.recordedAsDeleted(project);
    if (deleted !== undefined) notices.takePolicy(deleted);
    const listed = broker.homeLinks.told(kept, project);
    violations.finish();
    const auto = listed.held ? await autoApply(broker, job, world, started, ran) : undefined;
    const changes = auto === undefined ? listed : { ...listed, held: auto.held };
    // Auto-applied changes can be undone from the overlay's layers, so keep them.
    held = listed.held;
    const canChange = broker.backend.held !== null;
    const operators = forOperator(world, changes);
    const { rule } = job.decision;
    const hint = heldHint(job.span, job.effective, changes, auto, canChange, operators, rule);
    notices.takeChanges(changes, isIsolated(job), () => saidBy(job, ran).toString());
    const beside = changes.held
      ? await besideWords(broker, job.agent, project, { span: job.span, changes }).catch(() => undefined)
      : undefined;
    if (beside !== undefined) notices.takeSession(beside);
    const setId = changes.held ? undefined : setIdWords(project, [...changes.writes, ...changes.mods]);
    if (setId !== undefined) notices.takePolicy(setId);
    const { network, programs, telemetry } = witnesses;
    const result = { ran, changes, notices: notices.list(), hint, cutShort: cut?.message, network };
    const outcome = replyOf(job, world, result);
    if (outcome.kind === "refused") room.release();
    const told = { ran, outcome, changes, network, programs, telemetry, violations: violations.told };
    broker.trace.close(completedSpan(started, job, told));
    if (listed.held && auto === undefined) lookFirst(broker, job, world);
    // No replay compares the output of a file operation.
    if (job.isFileCall !== true)
      broker.outputSamples.keepLater(job.span, ran, job.request.env, secretsOfJob(job));
    return outcome.kind === "ran" ? { ...outcome, sent: room.release } : outcome;
  } catch (error) {
    room.release();
    broker.trace.closeFailed(started, error);
    throw error;
  } finally {
    gate.finish();
    if (!isIsolated(job)) broker.dirtyFiles.ended(project);
    lease.release(held);
  }
}

/** Bytes of each live output kept for notices and for the text of a replay's comparison. */
function liveKept({ outputs }: Job["request"]): number {
  return (outputs === "together" ? 128 : 64) * 1024;
}

function startOf(
  { span, session, agent, effective, decision, live }: Job,
  { id, isolation }: World,
): LiveStart {
  const { verdict, mode, rule } = decision;
  return {
    span_id: span,
    world_id: id,
    session_id: session.id,
    agent_id: agent,
    policy_id: effective.id,
    policy_hash: effective.hash,
    decision: { verdict, mode, rule },
    isolation,
    pty: live?.input?.terminal !== undefined,
    ...(live?.promptWord === undefined ? {} : { prompt_word: live.promptWord }),
  };
}

/** Collects problems known before the command begins. */
function firstNotices(broker: Broker, job: Job, { first, world, lost }: Lease): Notices {
  const { span, place, effective, told } = job;
  const notices = new Notices(span);
  for (const words of told) notices.takeSession(words);
  const missed = missedVariables(job);
  if (missed !== undefined) notices.takeSession(missed);
  if (lost !== undefined) notices.takeSession(lost);
  if (first) notices.takePlaces(world.spec.places ?? []);
  for (const words of staleWords(broker, effective)) notices.takePolicy(words);
  const unsure = broker.gitNamed.unsure(place.project);
  if (unsure !== undefined) notices.takePolicy(unsure);
  return notices;
}

/** Held autorun files on a policy's deny list for plain commands: only the operator applies them. */
function forOperator({ spec: { project, files } }: World, { held, autorun }: FsDiff): readonly string[] {
  const covers = held ? (files.held ?? []).map(coverOf) : [];
  return autorun.filter((path) => covers.some((cover) => cover.covers(join(project, path))));
}

/** Writes the start line; a command without a recorded start never begins. */
async function recordStart(broker: Broker, started: SpanRecord): Promise<Refusal | undefined> {
  try {
    await broker.trace.start(started);
    return undefined;
  } catch (error) {
    // The log may contain the line, although not durably.
    broker.trace.closeFailed(started, error);
    return cannotRecord("Nothing ran", error);
  }
}

/** Refuses a worthless token instead of ignoring it: the caller relies on the token's scopes. */
function refuseByScopes({ scopes }: Job): Refusal | undefined {
  return scopes !== null && isRefusal(scopes) ? scopes : undefined;
}

function runRequest(
  job: Job,
  { timeoutMs, more }: Admission,
  { argv, env, stateFile }: Launch,
): Omit<RunRequest, "onViolation" | "gate" | "maxOutputBytes" | "room"> {
  const { request } = job;
  return {
    argv,
    stateFile,
    cwd: job.place.cwd,
    env: commandEnvironment(job.environment.variables, env, job.agent, job.span),
    memoryFile: job.live?.promptWord === undefined ? tokenFile(job) : shellScript(job.live.promptWord),
    live: job.live,
    stdin: request.stdin_b64 === undefined ? undefined : Buffer.from(request.stdin_b64, "base64"),
    isOneOutput: request.outputs === "together",
    umask: request.umask === undefined ? undefined : Number.parseInt(request.umask, 8),
    background: request.background ?? "kill",
    timeoutMs,
    more,
  };
}

/** Passes the token by descriptor, readable by the command alone: never in a variable, an argument or a file. */
function tokenFile(job: Job): RunRequest["memoryFile"] {
  const scopes = scopesOfJob(job);
  return scopes === undefined
    ? undefined
    : { variable: "SUBSTRATE_SCOPE_FD", bytes: Buffer.from(scopes.token) };
}

/** Records a refused call. A call that could have run leaves a span; a malformed call leaves no span. */
function recordRefusal(broker: Broker, job: Job, error: Refusal): Outcome {
  try {
    if (error.code === "budget_exceeded") return refused(recordShortage(broker, job, error));
    broker.trace.event(refusedSpan(job, error));
    const hint = [error.hint, ...staleWords(broker, job.effective)].join(". ");
    return refused({ ...error, hint, span_id: job.span });
  } catch (fault) {
    return refused(cannotRecord("Nothing ran", fault));
  }
}

function refused(error: Refusal): Outcome {
  return { kind: "refused", error };
}

function nobodyWaits(): Refusal {
  return refusal("busy", "The client disconnected before its command began", "Ask again");
}
