/** The lines that one call leaves in the trace. */
import { statSync } from "node:fs";
import { resolve } from "node:path";
import type { FsDiff, ProgramCounts } from "../../schemas/generated/types.ts";
import type { World, WorldViolation } from "../../world/backend.ts";
import { newId } from "../model/ids.ts";
import { type Certainty, toldBuiltins } from "../policy/index.ts";
import { type Job, scopesOfJob, secretsOfJob } from "../model/job.ts";
import type { Outcome } from "../model/outcome.ts";
import type { Refusal } from "../model/refusal.ts";
import { scopesOf, usageOf } from "./reply-of.ts";
import type { Ran } from "../worlds/run.ts";
import type { CommandNetwork } from "../network/command-network.ts";
import type { TelemetryRecorder } from "../telemetry/telemetry-recorder.ts";
import { givenOf, isKept, isRepeatable } from "./given.ts";
import { replayContext } from "./replay-context.ts";
import { redact, redactRule, redactWords } from "../secrets/redact.ts";
import type { SpanRecord } from "./trace.ts";

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

/** All that is known of a command once it is over. */
export type Completion = {
  readonly ran: Ran;
  readonly outcome: Outcome;
  readonly changes: FsDiff;
  readonly violations: readonly WorldViolation[];
  /** Undefined: its world has none. */
  readonly network: CommandNetwork | undefined;
  /** Undefined counts: its world told of none. */
  readonly programs: { readonly counts: ProgramCounts | undefined };
  readonly telemetry: Pick<TelemetryRecorder, "fields">;
};

/** The line that closes a command: ended, ended by us, lost with its world, or never started. */
export function completedSpan(started: SpanRecord, job: Job, completion: Completion): SpanRecord {
  const { ran, outcome, changes, network } = completion;
  const { counts: programs } = completion.programs;
  const reply = outcome.kind === "ran" ? outcome.reply : undefined;
  return {
    ...started,
    ts: new Date().toISOString(),
    event_type: "command_complete",
    outcome: outcomeWord(ran, outcome),
    replayable: started.replayable && isRepeatable(outcomeWord(ran, outcome)),
    exit: reply?.exit ?? null,
    signal: reply?.signal ?? null,
    timed_out: ran.timedOut,
    duration_ms: Math.round(ran.durationMs * 1000) / 1000,
    scopes_used: scopesOf(job, changes, network),
    fs_diff: changes,
    usage: usageOf(ran.ending, network),
    stdout_sha256: ran.stdout.sha256(),
    stderr_sha256: ran.stderr.sha256(),
    ...(programs === undefined ? {} : { programs }),
    ...completion.telemetry.fields(started.redacted),
    ...limitFields(completion.violations),
    ...(outcome.kind === "refused" ? refusalFields(job, outcome.error) : {}),
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

/**
 * One line for each builtin of the command's shell that changes its state and certainly ran; the last one counts those that have
 * none. What stands behind `&&`, `||` or `if` and may have been passed over has no line.
 */
export function builtinSpans(job: Job, started: SpanRecord, ran: Ran): readonly SpanRecord[] {
  const { verdict, mode, builtins } = job.decision;
  const { fragments, more } = toldBuiltins(builtins, certaintiesOf(ran), (folders) =>
    leadsToFolder(job, folders),
  );
  return fragments.map((fragment, index) => {
    const { text, redacted } = redact(fragment, "cmd", secretsOfJob(job));
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

/** Whether `cd` comes there. What the home is inside only the command knows. */
function leadsToFolder({ place: { cwd } }: Job, folders: readonly string[]): boolean {
  if (folders.some((folder) => folder.includes("\0"))) return false;
  try {
    return folders.every((_, at) => statSync(resolve(cwd, ...folders.slice(0, at + 1))).isDirectory());
  } catch {
    // Not there, or not ours to look into, ignoring: then nobody knows that the builtin ran.
    return false;
  }
}

function certaintiesOf({ ending, timedOut, cancelled }: Ran): ReadonlySet<Certainty> {
  if (ending.kind === "not_started") return new Set();
  // A shell that was ended in the middle came to its first command, and nobody knows how much further.
  if (ending.kind !== "exited" || timedOut || cancelled) return new Set(["started"]);
  return new Set(ending.code === 0 ? ["started", "ended", "succeeded"] : ["started", "ended"]);
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

/** The message may name the fragment that a rule met: what is secret there is secret here. */
function refusalFields(
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
