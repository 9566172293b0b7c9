import type { Broker } from "../broker.ts";
import type { Job } from "../model/job.ts";
import type { Refusal } from "../model/refusal.ts";
import { shortageSpan } from "../spans/span-records.ts";
import { refusedTerms } from "./admit.ts";
import { SHARED } from "../budgets/ledger.ts";

/** Records a budget refusal and adds the span's id; during a flood of such calls, some refusals get no span. */
export function recordShortage(broker: Broker, job: Job, error: Refusal): Refusal {
  const source = broker.budgets.ledger.isLabel(job.agent) ? SHARED : job.agent;
  const isWritten = broker.limitSpans.record(source, () => ({
    ...shortageSpan(job, error),
    ...refusedTerms(job),
  }));
  return isWritten ? { ...error, span_id: job.span } : error;
}
