/** The lines that one call leaves in the trace. */
import type { World, WorldViolation } from "../../world/backend.ts";
import { newId } from "../model/ids.ts";
import { type Job, scopesOfJob, secretsOfJob } from "../model/job.ts";
import type { Refusal } from "../model/refusal.ts";
import { replayContext } from "./replay-context.ts";
import { isUnchangedBySpan, redact, redactRule, redactWords } from "../secrets/redact.ts";
import type { SpanRecord } from "./trace.ts";
import type { GivenCommand } from "../../schemas/generated/types.ts";

/** The line that stands before the command has any effect. */
export function startedSpan(job: Job, world: World): SpanRecord {
  const identity = job.idempotency === undefined ? {} : { idempotency: job.idempotency };
  const { id: world_id, isolation } = world;
  const scopes_used = [...(scopesOfJob(job)?.texts ?? [])];
  const overlay = overlayOf(job, world);
  return {
    ...common(job),
    ...identity,
    ...overlay,
    event_type: "command_start",
    world_id,
    isolation,
    scopes_used,
  };
}

/** What is needed to find its held changes again, whichever broker is asked for them. */
function overlayOf({ place: { project, identity } }: Job, { mountedAt }: World): Pick<SpanRecord, "overlay"> {
  return mountedAt === null ? {} : { overlay: { project, identity, mounted_at: String(mountedAt) } };
}

/** The one line of a call that was refused. */
export function refusedSpan(job: Job, error: Refusal): SpanRecord {
  return {
    ...common(job),
    event_type: "violation",
    component: "broker",
    outcome: "refused",
    exit: error.exit ?? null,
    replayable: false,
    ...refusalFields(job, error),
  };
}

/** The same for a call that a spent budget refused. */
export function shortageSpan(job: Job, error: Refusal): SpanRecord {
  const spent = error.budget === undefined ? {} : { spent: error.budget };
  return { ...refusedSpan(job, error), event_type: "rate_limit", ...spent };
}

/** One line for each `commands.warn` rule that the running command met; `started` is the command's own line. */
export function warningSpans(job: Job, started: SpanRecord): readonly SpanRecord[] {
  return job.decision.warnings.map((rule) => ({
    ...started,
    span_id: newId("spn"),
    parent_span: job.span,
    event_type: "violation" as const,
    component: "broker" as const,
    decision: {
      verdict: job.decision.verdict,
      mode: job.decision.mode,
      rule: redactRule(rule, secretsOfJob(job)),
    },
    replayable: false,
  }));
}

/** The line of something that the running command did against the rules of its world. */
export function violationSpan(job: Job, started: SpanRecord, violation: WorldViolation): SpanRecord {
  const known = secretsOfJob(job);
  return {
    ...started,
    ts: new Date().toISOString(),
    span_id: newId("spn"),
    parent_span: job.span,
    event_type: "violation",
    component: "world",
    message: redact(violation.message, "message", known).text,
    violation: { kind: violation.kind, subject: redact(violation.subject, "violation", known).text },
    replayable: false,
  };
}

/** What every line of a call says that may be replayed. */
export function common(job: Job): SpanRecord {
  const line = unreplayed(job);
  const { context, redacted: replaced } = replayContext(job);
  const redacted = [...line.redacted, ...replaced];
  return {
    ...line,
    redacted,
    replayable: redacted.length === 0 && isKept(job),
    replay_context: context,
    given: givenOf(job),
  };
}

/** What every line of a call says, without what a replay needs. */
export function unreplayed(job: Job): SpanRecord {
  const { cmd, argv } = job.request;
  const known = secretsOfJob(job);
  const { text, redacted } =
    argv === undefined ? redact(cmd ?? "", "cmd", known) : redactWords(argv, "cmd", known);
  const { verdict, mode, rule } = job.decision;
  return {
    ts: new Date().toISOString(),
    event_type: "command_start",
    session_id: job.session.id,
    span_id: job.span,
    parent_span: parentOf(job),
    component: "world",
    world_id: null,
    policy_id: job.effective.id,
    policy_hash: job.effective.hash,
    policy_commit: job.effective.commit,
    agent_id: job.agent,
    cwd: job.place.cwd,
    cmd: text,
    exit: null,
    signal: null,
    timed_out: false,
    outcome: null,
    duration_ms: null,
    scopes_used: [],
    fs_diff: null,
    usage: null,
    isolation: null,
    decision: { verdict, mode, rule: redactRule(rule, known) },
    ...approvalOf(job),
    stdout_sha256: null,
    stderr_sha256: null,
    redacted: [...redacted],
    replayable: false,
    replay_context: null,
  };
}

/** Whatever the caller says it is: a token in the wrong field is a token all the same. */
function parentOf({ request: { parent_span: parent } }: Job): string | null {
  return parent === undefined ? null : redact(parent, "parent_span").text;
}

/** The command's own approval before that of its scopes, which has spans of its own. */
function approvalOf(job: Job): Pick<SpanRecord, "approval_id"> {
  const approval = job.approval ?? scopesOfJob(job)?.approval ?? null;
  return approval === null ? {} : { approval_id: approval };
}

/** The message may name the fragment that a rule met: what is secret there is secret here. */
export function refusalFields(
  job: Job,
  { code, message, hint, approval_id }: Refusal,
): Pick<SpanRecord, "code" | "message" | "hint" | "approval_id"> {
  return {
    code,
    message: redact(message, "message", secretsOfJob(job)).text,
    hint,
    ...(approval_id === undefined ? {} : { approval_id }),
  };
}

/** How a command was given, for whoever runs it once more. */
function givenOf(job: Job): GivenCommand {
  const { request, replays } = job;
  const { argv, profile, background } = request;
  const missing = notKept(job);
  const shell = shellVariables(job);
  return {
    form: argv === undefined ? (request.shell ?? "sh") : "argv",
    ...(profile === undefined ? {} : { profile }),
    ...(shell === undefined ? {} : { caller_env: shell }),
    ...(missing.length === 0 ? {} : { not_kept: [...missing] }),
    ...(background === "keep" ? { keeps_background: true } : {}),
    ...(replays === undefined ? {} : { replays: replays.span }),
    ...(replays?.under === undefined ? {} : { under: replays.under }),
  };
}

/** Whether its span holds all that it was given. */
function isKept(job: Job): boolean {
  const { argv = [], background } = job.request;
  return notKept(job).length === 0 && background !== "keep" && argv.every(isUnchangedBySpan);
}

/** Whether a command that ended so can be compared with another run of it. */
export function isRepeatable(outcome: SpanRecord["outcome"]): boolean {
  return outcome === "ended" || outcome === "timed_out";
}

/** Undefined also where one of them looks like a secret: then the line says that variables are not kept. */
function shellVariables({ environment: { callers } }: Job): GivenCommand["caller_env"] {
  return callers?.areKept === true ? callers.variables : undefined;
}

function notKept(job: Job): NonNullable<GivenCommand["not_kept"]> {
  const { env, stdin_b64, scope_token } = job.request;
  const isLost = job.environment.callers?.areKept === false;
  return [
    ...(env === undefined && !isLost ? [] : (["env"] as const)),
    ...(stdin_b64 === undefined ? [] : (["stdin"] as const)),
    ...(scope_token === undefined ? [] : (["scope_token"] as const)),
  ];
}
