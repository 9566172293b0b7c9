import { isRefusal, type Refusal } from "../model/refusal.ts";
import { askPerson } from "../approvals/ask-person.ts";
import { commandQuestion, type TryOut } from "../approvals/command-question.ts";
import type { Broker } from "../broker.ts";
import type { Job } from "../model/job.ts";
import { previewCommand } from "./preview.ts";

/** Whether a person must be asked, because of the policy or because of the caller. */
export function mustAsk({ decision, request }: Job): boolean {
  return decision.verdict === "ask" || request.require_approval === true;
}

/** Returns the approved job, by a new or an earlier answer of a person; or the reason for not running. */
export async function approved(broker: Broker, job: Job, signal: AbortSignal): Promise<Job | Refusal> {
  const waitMs = job.request.approval_wait_ms ?? 0;
  const tryOut: TryOut = (tried, layers) => previewCommand(broker, tried, layers);
  const granted = await askPerson(
    broker.approvals,
    () => commandQuestion(broker, job, tryOut),
    waitMs,
    signal,
  );
  if (isRefusal(granted)) return granted;
  const { decision } = job;
  const verdict = decision.verdict === "ask" ? decision.approved : decision.verdict;
  return { ...job, approval: granted.approval, decision: { ...decision, verdict } };
}
