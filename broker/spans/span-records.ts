/** Trace lines of one call. */
import type { World, WorldViolation } from "../../world/backend.ts";
import { newId } from "../model/ids.ts";
import { type Job, scopesOfJob, secretsOfJob } from "../model/job.ts";
import type { Refusal } from "../model/refusal.ts";
import { replayContext } from "./replay-context.ts";
import { isUnchangedBySpan, redact, redactRule, redactWords } from "../secrets/redact.ts";
import type { SpanRecord } from "./trace.ts";
import type { GivenCommand } from "../../schemas/generated/types.ts";

/** Builds the start line, written before the command has any effect. */
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

/** Data for finding held changes again, also in a later broker. */
function overlayOf({ place: { project, identity } }: Job, { mountedAt }: World): Pick<SpanRecord, "overlay"> {
  return mountedAt === null ? {} : { overlay: { project, identity, mounted_at: String(mountedAt) } };
}

/** Builds the only line of a refused call. */
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

/** Builds the only line of a call refused by an exhausted budget. */
export function shortageSpan(job: Job, error: Refusal): SpanRecord {
  const spent = error.budget === undefined ? {} : { spent: error.budget };
  return { ...refusedSpan(job, error), event_type: "rate_limit", ...spent };
}

/** Builds a line for each matching `commands.warn` rule; `started` is the command's own line. */
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

/** Builds the line of a running command's violation of its world's rules. */
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

/** Builds the fields shared by all lines of a replayable call. */
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

/** Builds the fields shared by all lines of a call, without the replay data. */
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

/** Redacts the caller's text: it may contain a credential by mistake. */
function parentOf({ request: { parent_span: parent } }: Job): string | null {
  return parent === undefined ? null : redact(parent, "parent_span").text;
}

/** Prefers the command's own approval to that of its scopes, which has its own spans. */
function approvalOf(job: Job): Pick<SpanRecord, "approval_id"> {
  const approval = job.approval ?? scopesOfJob(job)?.approval ?? null;
  return approval === null ? {} : { approval_id: approval };
}

/** Redacts the message: it may quote the fragment matched by a rule, secrets included. */
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

/** Records how a command was given, for a replay. */
function givenOf(job: Job): GivenCommand {
  const { request, replays } = job;
  const { argv, profile, background, outputs } = request;
  const missing = notKept(job);
  const shell = shellVariables(job);
  return {
    form: argv === undefined ? (request.shell ?? "sh") : "argv",
    ...(profile === undefined ? {} : { profile }),
    ...(shell === undefined ? {} : { caller_env: shell }),
    ...(missing.length === 0 ? {} : { not_kept: [...missing] }),
    ...(background === "keep" ? { keeps_background: true } : {}),
    ...(outputs === "together" ? { outputs } : {}),
    ...(job.ownHome === undefined ? {} : { own_home: true }),
    ...(job.isFileCall === true ? { file_call: true } : {}),
    ...(replays === undefined ? {} : { replays: replays.span }),
    ...(replays?.under === undefined ? {} : { under: replays.under }),
  };
}

/** Whether the span records the whole call. */
function isKept(job: Job): boolean {
  const { argv = [], background } = job.request;
  const stays = background === "keep" || job.ownHome !== undefined;
  return notKept(job).length === 0 && !stays && argv.every(isUnchangedBySpan);
}

/** Whether a command with this outcome can be compared with another run. */
export function isRepeatable(outcome: SpanRecord["outcome"]): boolean {
  return outcome === "ended" || outcome === "timed_out";
}

/** Undefined also when a variable resembles a secret: the line then says that variables are not recorded. */
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
