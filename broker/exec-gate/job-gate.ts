import type { Broker } from "../broker.ts";
import { isIsolated, type Job, secretsOfJob } from "../job.ts";
import { startPlaces } from "../judge.ts";
import type { SpanRecord } from "../spans/trace.ts";
import { askAboutStart } from "./ask-start.ts";
import { CommandGate } from "./command-gate.ts";
import { StartRecords } from "./start-records.ts";

/** Of a command that runs. `started` is the command's own line. `signal` aborts when nobody waits for the command any more. */
export function jobGate(broker: Broker, job: Job, started: SpanRecord, signal: AbortSignal): CommandGate {
  return new CommandGate(broker, job, () => {
    const over = new AbortController();
    const [where] = startPlaces(broker, job);
    const write = (span: SpanRecord): void => broker.trace.event(span);
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
