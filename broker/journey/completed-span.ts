/** Trace lines written after a command has ended. */
import { statSync } from "node:fs";
import { resolve } from "node:path";
import type { FsDiff, ProgramCounts } from "../../schemas/generated/types.ts";
import type { WorldViolation } from "../../world/backend.ts";
import { newId } from "../model/ids.ts";
import { type Certainty, toldBuiltins } from "../policy/index.ts";
import { type Job, secretsOfJob } from "../model/job.ts";
import type { Outcome } from "../model/outcome.ts";
import { scopesOf, usageOf } from "./reply-of.ts";
import type { Ran } from "../worlds/run.ts";
import type { CommandNetwork } from "../network/command-network.ts";
import type { TelemetryRecorder } from "../telemetry/telemetry-recorder.ts";
import { isRepeatable } from "../spans/span-records.ts";
import { refusalFields } from "../spans/span-records.ts";
import { redact } from "../secrets/redact.ts";
import type { SpanRecord } from "../spans/trace.ts";

/** Everything known about a finished command. */
export type Completion = {
  readonly ran: Ran;
  readonly outcome: Outcome;
  readonly changes: FsDiff;
  readonly violations: readonly WorldViolation[];
  /** Undefined when the world has no network. */
  readonly network: CommandNetwork | undefined;
  /** `counts` is undefined when the world reported no programs. */
  readonly programs: { readonly counts: ProgramCounts | undefined };
  readonly telemetry: Pick<TelemetryRecorder, "fields">;
};

/** Builds the line that closes a command's span: the command ended, was ended, was lost with its world, or never started. */
export function completedSpan(started: SpanRecord, job: Job, completion: Completion): SpanRecord {
  const { ran, outcome, changes, network } = completion;
  const { counts: programs } = completion.programs;
  const reply = outcome.kind === "ran" ? outcome.reply : undefined;
  return {
    ...started,
    ts: new Date().toISOString(),
    event_type: "command_complete",
    outcome: outcomeWord(ran, outcome),
    ...withoutInput(started, job),
    replayable: started.replayable && isRepeatable(outcomeWord(ran, outcome)) && !hasUnkeptInput(job),
    exit: reply?.exit ?? null,
    signal: reply?.signal ?? null,
    timed_out: ran.timedOut,
    duration_ms: Math.round(ran.durationMs * 1000) / 1000,
    scopes_used: scopesOf(job, changes, network),
    fs_diff: changes,
    usage: usageOf(ran.ending, started, network),
    stdout_sha256: ran.stdout.sha256(),
    stderr_sha256: ran.stderr.sha256(),
    ...(programs === undefined ? {} : { programs }),
    ...completion.telemetry.fields(started.redacted),
    ...limitFields(completion.violations),
    ...(outcome.kind === "refused" ? refusalFields(job, outcome.error) : {}),
  };
}

/** Live input is not kept, so a replay would need it from its caller. */
function withoutInput({ given }: SpanRecord, job: Job): Pick<SpanRecord, "given"> {
  if (given === undefined || !hasUnkeptInput(job)) return {};
  const notKept = new Set([...(given.not_kept ?? []), "stdin" as const]);
  return { given: { ...given, not_kept: [...notKept] } };
}

function hasUnkeptInput({ live }: Job): boolean {
  return live?.hasUnkeptInput === true;
}

/**
 * Builds a line for each builtin of the command's shell that changes the shell's state and certainly ran; the last line counts
 * builtins without a line. A builtin behind `&&`, `||` or `if` that the shell may have skipped gets no line.
 */
export function builtinSpans(
  job: Job,
  started: SpanRecord,
  certain: ReadonlySet<Certainty>,
  parent = job.span,
): readonly SpanRecord[] {
  const { verdict, mode, builtins } = job.decision;
  const { fragments, more } = toldBuiltins(builtins, certain, (folders) => leadsToFolder(job, folders));
  return fragments.map((fragment, index) => {
    const { text, redacted } = redact(fragment, "cmd", secretsOfJob(job));
    const rest = more > 0 && index === fragments.length - 1;
    return {
      ...started,
      span_id: newId("spn"),
      parent_span: parent,
      event_type: "builtin_command" as const,
      component: "shell" as const,
      cmd: text,
      redacted: [...redacted],
      decision: { verdict, mode, rule: null },
      replayable: false,
      ...(rest ? { message: `${more} more builtins of this command are not recorded as spans` } : {}),
    };
  });
}

/** Whether `cd` certainly succeeds. Only the command knows the value of HOME inside the world. */
function leadsToFolder({ place: { cwd } }: Job, folders: readonly string[]): boolean {
  if (folders.some((folder) => folder.includes("\0"))) return false;
  try {
    return folders.every((_, at) => statSync(resolve(cwd, ...folders.slice(0, at + 1))).isDirectory());
  } catch {
    // Missing, or unreadable for the broker, ignoring: the builtin cannot be proven to have run.
    return false;
  }
}

/** Returns what is certain of the parts of a command that ended so. */
export function certaintiesOf({ ending, timedOut, cancelled }: Ran): ReadonlySet<Certainty> {
  if (ending.kind === "not_started") return new Set();
  // A shell ended early certainly reached its first command; how much further is unknown.
  if (ending.kind !== "exited" || timedOut || cancelled) return new Set(["started"]);
  return certaintiesAfter(ending.code);
}

/** Returns what is certain of the parts of a command that ended by itself. */
export function certaintiesAfter(exit: number): ReadonlySet<Certainty> {
  return new Set(exit === 0 ? ["started", "ended", "succeeded"] : ["started", "ended"]);
}

/** Repeats a met limit in the command's own line, as the reason for its end. Each limit also has a line of its own. */
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
