import { isIsolated, type Job, secretsOfJob } from "../model/job.ts";
import { startPlaces } from "../policies/judge.ts";
import type { SpanRecord } from "../spans/trace.ts";
import { CommandGate, type GateNeeds } from "./command-gate.ts";
import { StartRecords } from "./start-records.ts";
import { isRefusal, type Refusal } from "../model/refusal.ts";
import type { ProgramStart } from "../../world/backend.ts";
import type { Approvals } from "../approvals/approvals.ts";
import { askPerson } from "../approvals/ask-person.ts";
import { commandQuestion, type QuestionNeeds } from "../approvals/command-question.ts";
import type { Granted, Question } from "../approvals/question.ts";
import type { Effective } from "../model/effective.ts";
import type { StartFinding, Where } from "../policy/index.ts";
import { nobodyIsAsked } from "./start-refusals.ts";

export type JobGateParts = {
  /** The command's `command_start` line. */
  readonly started: SpanRecord;
  /** Writes a line below `started`. */
  readonly write: (span: SpanRecord) => void;
  /** Aborts when nobody awaits the command. */
  readonly signal: AbortSignal;
};

/** Makes the gate of a running command. */
export function jobGate(
  broker: GateNeeds & AskNeeds,
  job: Job,
  { started, write, signal }: JobGateParts,
): CommandGate {
  return new CommandGate(broker, job, () => {
    const over = new AbortController();
    const [where] = startPlaces(broker, job);
    return {
      isIsolated: isIsolated(job),
      isApproved: job.approval !== null,
      ask: (start, finding, effective, wait) => {
        const asking = { job, where, signal: AbortSignal.any([signal, over.signal]) };
        return askAboutStart(broker, asking, { start, finding, effective }, wait);
      },
      records: new StartRecords({ started, secrets: secretsOfJob(job), write }),
      // Kept processes go on starting programs.
      close: () => (job.request.background === "keep" ? undefined : over.abort()),
    };
  });
}

/** Dependencies on the broker for asking about a start. */
type AskNeeds = QuestionNeeds & { readonly approvals: Approvals };

/** Added to a question's waiting time, so the answer arrives before the timeout. */
const MARGIN_MS = 2000;

/**
 * Asks a person about a program started by a running command; the start waits. Calls `wait` with the time limit first.
 */
async function askAboutStart(
  broker: AskNeeds,
  { job, where, signal }: { readonly job: Job; readonly where: Where; readonly signal: AbortSignal },
  asked: { readonly start: ProgramStart; readonly finding: StartFinding; readonly effective: Effective },
  wait: (milliseconds: number) => void,
): Promise<Granted | Refusal> {
  const { finding } = asked;
  if (job.replays !== undefined) return nobodyIsAsked(finding, "a replay cannot ask");
  const argv = shownWords(asked.start, where);
  if (argv === null) return nobodyIsAsked(finding, "the program has no file to show to a person");
  const { folder } = asked.start;
  if (folder === null) return nobodyIsAsked(finding, "its working folder has no path to show to a person");
  // An agent that did not offer to wait gets the question's id at once, and can do other work meanwhile.
  const patience = job.request.approval_wait_ms ?? 0;
  const question = (): Question | Refusal =>
    startQuestion(broker, jobOf(job, argv, folder, asked), patience > 0);
  const first = question();
  if (isRefusal(first)) return first;
  const waitMs = Math.min(first.timeoutMs, patience);
  wait(waitMs + MARGIN_MS);
  return await askPerson(broker.approvals, question, waitMs, signal);
}

/**
 * Uses the bare name if the name resolves to this file, so an answer also counts for the same words as a separate
 * command.
 */
function shownWords({ files: [file] }: ProgramStart, where: Where): readonly [string, ...string[]] | null {
  const { called, path, argv } = file;
  if (path === null) return null;
  const name = called.slice(called.lastIndexOf("/") + 1);
  const isItsName = name !== "" && where.resolve?.(name)?.real === path;
  return [isItsName ? name : called.startsWith("/") ? called : path, ...argv.slice(1)];
}

/** Returns a name that is not the file's, and that a rule may have matched. Login shells have a dash before theirs. */
function otherName({ files: [file] }: ProgramStart): string | undefined {
  const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
  const given = nameOf(file.argv[0] ?? "").replace(/^-/, "");
  return given === "" || given === nameOf(file.called) || given === nameOf(file.path ?? "")
    ? undefined
    : given;
}

/** Makes a job for the same program as a separate command: the answer binds to the same facts. */
function jobOf(
  { live: _outer, ...job }: Job,
  argv: readonly [string, ...string[]],
  folder: string,
  {
    start,
    finding,
    effective,
  }: { readonly start: ProgramStart; readonly finding: StartFinding; readonly effective: Effective },
): Job {
  const startedAs = otherName(start);
  const { agent_id, cwd, env, profile, session_id } = job.request;
  return {
    ...job,
    isStart: true,
    ...(startedAs === undefined ? {} : { startedAs }),
    place: { ...job.place, cwd: folder },
    argv,
    effective,
    request: {
      agent_id,
      argv: [...argv],
      ...(cwd === undefined ? {} : { cwd }),
      ...(env === undefined ? {} : { env }),
      ...(profile === undefined ? {} : { profile }),
      ...(session_id === undefined ? {} : { session_id }),
    },
    decision: {
      ...job.decision,
      verdict: "ask",
      mode: "enforce",
      rule: finding.rule,
      policyId: finding.policyId,
      approved: isIsolated(job) ? "isolate" : "allow",
    },
  };
}

/** Makes the question. No preview: the program's effect alone differs from its effect inside a running command. */
function startQuestion(broker: QuestionNeeds, job: Job, waits: boolean): Question | Refusal {
  const question = commandQuestion(broker, job);
  if (isRefusal(question)) return question;
  const note = `A running command starts this program${waits ? " and waits for the answer" : "; run the command again to use the answer"}`;
  return { ...question, notes: [...question.notes, note], previewFirst: false };
}

/** Makes the gate of a preview: runs on an overlay as if approved, asks nobody and reports nothing. */
export function previewGate(broker: GateNeeds, job: Job): CommandGate {
  return new CommandGate(broker, job, () => ({
    isIsolated: true,
    isApproved: true,
    ask: (_start, finding) => Promise.resolve(nobodyIsAsked(finding, "a preview cannot ask")),
    records: { noted: () => {}, refused: () => {}, unread: () => {}, finish: () => {} },
    close: () => {},
  }));
}
