import { isIsolated, type Job, secretsOfJob } from "../model/job.ts";
import { startPlaces } from "../policies/judge.ts";
import type { SpanRecord } from "../spans/trace.ts";
import { type AskNeeds, askAboutStart } from "./ask-start.ts";
import { CommandGate, type GateNeeds } from "./command-gate.ts";
import { StartRecords } from "./start-records.ts";

export type JobGateParts = {
  /** The command's own line. */
  readonly started: SpanRecord;
  /** Writes a line below it. */
  readonly write: (span: SpanRecord) => void;
  /** Aborts when nobody waits for the command any more. */
  readonly signal: AbortSignal;
};

/** Of a command that runs. */
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
      // What is kept goes on starting programs.
      close: () => (job.request.background === "keep" ? undefined : over.abort()),
    };
  });
}
