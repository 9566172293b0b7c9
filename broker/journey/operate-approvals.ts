/** What an operator does about questions that wait for a person. Nobody else can. */
import { isRefusal, type Refusal, refusal } from "../model/refusal.ts";
import type {
  ApprovalDecision,
  ApprovalDecisionReply,
  ApprovalPreviewReply,
  ApprovalsReply,
} from "../../schemas/generated/types.ts";
import type { Broker } from "../broker.ts";

/** What waits, and what is wrong with the file of what was approved for always. */
export function listApprovals(broker: Broker): ApprovalsReply {
  return { approvals: broker.approvals.list(), problems: broker.always.problems() };
}

/** The answer counts once it is on record; it counts for nothing else than what was asked. */
export async function decideApproval(
  broker: Broker,
  id: string,
  decision: ApprovalDecision,
): Promise<ApprovalDecisionReply | Refusal> {
  try {
    const decided = broker.approvals.decide(id, decision);
    await broker.approvals.written();
    return isRefusal(decided) ? decided : { approval_id: id, decision, released: decided.released };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return refusal(
      "busy",
      `The answer does not count: it cannot be recorded (${why})`,
      "Free space where SUBSTRATE_HOME lies, then answer again",
    );
  }
}

/** Tries the command out on an overlay that is discarded. */
export async function previewApproval(broker: Broker, id: string): Promise<ApprovalPreviewReply | Refusal> {
  const preview = await broker.approvals.preview(id);
  return isRefusal(preview) ? preview : { approval_id: id, preview };
}
