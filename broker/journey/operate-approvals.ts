/** Operator calls on pending approvals; only the operator's socket can make them. */
import { isRefusal, type Refusal, refusal } from "../model/refusal.ts";
import type {
  ApprovalDecision,
  ApprovalDecisionReply,
  ApprovalPreviewReply,
  ApprovalsReply,
} from "../../schemas/generated/types.ts";
import type { Broker } from "../broker.ts";

/** Lists pending approvals, and problems with the file of permanent approvals. */
export function listApprovals(broker: Broker): ApprovalsReply {
  return { approvals: broker.approvals.list(), problems: broker.always.problems() };
}

/** Decides an approval. The answer takes effect once recorded, and only for the exact question asked. */
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
      `The answer was not accepted: it cannot be recorded (${why})`,
      "Free space where SUBSTRATE_HOME lies, then answer again",
    );
  }
}

/** Previews the command on an overlay, then discards the overlay. */
export async function previewApproval(broker: Broker, id: string): Promise<ApprovalPreviewReply | Refusal> {
  const preview = await broker.approvals.preview(id);
  return isRefusal(preview) ? preview : { approval_id: id, preview };
}
