/** The lines that one call leaves in the trace. */
import type { DecisionRule, FsDiff } from "../../schemas/generated/types.ts";
import type { World, WorldViolation } from "../../world/backend.ts";
import { environmentHash } from "../environment.ts";
import { newId } from "../ids.ts";
import { type Job, scopesOfJob } from "../job.ts";
import type { Outcome } from "../outcome.ts";
import type { Refusal } from "../refusal.ts";
import { scopesOf, usageOf } from "../reply-of.ts";
import type { Ran } from "../run.ts";
import { redact, redactWords } from "./redact.ts";
import type { SpanRecord } from "./trace.ts";

/** The line that stands before the command has any effect. */
export function startedSpan(job: Job, world: World): SpanRecord {
  const identity = job.idempotency === undefined ? {} : { idempotency: job.idempotency };
  const { id: world_id, isolation } = world;
  const scopes_used = [...(scopesOfJob(job)?.texts ?? [])];
  return { ...common(job), ...identity, event_type: "command_start", world_id, isolation, scopes_used };
}

/** All that is known of a command once it is over. */
export type Completion = {
  readonly ran: Ran;
  readonly outcome: Outcome;
  readonly changes: FsDiff;
  readonly violations: readonly WorldViolation[];
};

/** The line that closes a command: ended, ended by us, lost with its world, or never started. */
export function completedSpan(started: SpanRecord, job: Job, completion: Completion): SpanRecord {
  const { ran, outcome, changes } = completion;
  const reply = outcome.kind === "ran" ? outcome.reply : undefined;
  return {
    ...started,
    ts: new Date().toISOString(),
    event_type: "command_complete",
    outcome: outcomeWord(ran, outcome),
    exit: reply?.exit ?? null,
    signal: reply?.signal ?? null,
    timed_out: ran.timedOut,
    duration_ms: Math.round(ran.durationMs * 1000) / 1000,
    scopes_used: scopesOf(job, changes),
    fs_diff: changes,
    usage: usageOf(ran.ending),
    stdout_sha256: ran.stdout.sha256(),
    stderr_sha256: ran.stderr.sha256(),
    ...limitFields(completion.violations),
    ...(outcome.kind === "refused" ? refusalFields(outcome.error) : {}),
  };
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
    ...refusalFields(error),
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
    decision: { verdict: job.decision.verdict, mode: job.decision.mode, rule: cleanRule(rule) },
    replayable: false,
  }));
}

/** One line for each builtin of the command's shell that changes its state; the last one counts those that have none. */
export function builtinSpans(job: Job, started: SpanRecord): readonly SpanRecord[] {
  const { verdict, mode, builtins } = job.decision;
  const { fragments, more } = builtins;
  return fragments.map((fragment, index) => {
    const { text, redacted } = redact(fragment, "cmd");
    const rest = more > 0 && index === fragments.length - 1;
    return {
      ...started,
      span_id: newId("spn"),
      parent_span: job.span,
      event_type: "builtin_command" as const,
      component: "shell" as const,
      cmd: text,
      redacted: [...redacted],
      decision: { verdict, mode, rule: null },
      replayable: false,
      ...(rest ? { message: `${more} more builtins of this command have no span of their own` } : {}),
    };
  });
}

/** The line of something that the running command did against the rules of its world. */
export function violationSpan(job: Job, started: SpanRecord, violation: WorldViolation): SpanRecord {
  return {
    ...started,
    ts: new Date().toISOString(),
    span_id: newId("spn"),
    parent_span: job.span,
    event_type: "violation",
    component: "world",
    message: violation.message,
    violation: { kind: violation.kind, subject: redact(violation.subject, "violation").text },
    replayable: false,
  };
}

function cleanRule(rule: DecisionRule | null): DecisionRule | null {
  return rule === null ? null : { ...rule, fragment: redact(rule.fragment, "rule").text };
}

function common(job: Job): SpanRecord {
  const { cmd, argv } = job.request;
  const { text, redacted } = argv === undefined ? redact(cmd ?? "", "cmd") : redactWords(argv, "cmd");
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
    decision: { verdict, mode, rule: cleanRule(rule) },
    ...approvalOf(job),
    stdout_sha256: null,
    stderr_sha256: null,
    redacted: [...redacted],
    replayable: redacted.length === 0 && !hasUnkept(job.request),
    replay_context: replayContext(job),
  };
}

/** Whatever the caller says it is: a token in the wrong field is a token all the same. */
function parentOf({ request: { parent_span: parent } }: Job): string | null {
  return parent === undefined ? null : redact(parent, "parent_span").text;
}

/** What a command was given that no span keeps. */
function hasUnkept({ env, stdin_b64, scope_token }: Job["request"]): boolean {
  return env !== undefined || stdin_b64 !== undefined || scope_token !== undefined;
}

/** The command's own approval before that of its scopes, which has spans of its own. */
function approvalOf(job: Job): Pick<SpanRecord, "approval_id"> {
  const approval = job.approval ?? scopesOfJob(job)?.approval ?? null;
  return approval === null ? {} : { approval_id: approval };
}

function replayContext(job: Job): SpanRecord["replay_context"] {
  const added = job.request.env;
  const { variables, hash } = job.environment;
  const env = added === undefined ? variables : { ...variables, ...added };
  return {
    path: env["PATH"] ?? null,
    env_hash: added === undefined ? hash : environmentHash(env),
    umask: "0022",
    locale: env["LC_ALL"] ?? env["LANG"] ?? null,
    cwd: job.place.cwd,
    policy_id: job.effective.id,
    policy_commit: job.effective.commit,
    world_image: job.worldImage,
    project_commit: job.projectCommit,
    dirty_hash: null,
  };
}

/** The limit that a command met stands in its own line too: it says why it ended so. Each has a line of its own beside. */
function limitFields(violations: readonly WorldViolation[]): Pick<SpanRecord, "violation" | "message"> {
  const met = violations.find(({ kind }) => kind === "limit");
  return met === undefined
    ? {}
    : { violation: { kind: met.kind, subject: met.subject }, message: met.message };
}

function outcomeWord(ran: Ran, outcome: Outcome): SpanRecord["outcome"] {
  if (ran.ending.kind === "world_lost") return "lost";
  if (outcome.kind === "refused") return "failed";
  if (ran.timedOut) return "timed_out";
  return ran.cancelled ? "cancelled" : "ended";
}

function refusalFields(error: Refusal): Pick<SpanRecord, "code" | "message" | "hint" | "approval_id"> {
  const { code, message, hint, approval_id } = error;
  return {
    code,
    message: redact(message, "message").text,
    hint,
    ...(approval_id === undefined ? {} : { approval_id }),
  };
}
