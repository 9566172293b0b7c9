import type { Request } from "express";
import { decideApproval, listApprovals, previewApproval } from "../../broker/journey/operate-approvals.ts";
import { isRefusal, stopping } from "../../broker/model/refusal.ts";
import type { ApprovalDecisionRequest } from "../../schemas/generated/types.ts";
import type { Call } from "./call.ts";

/** `GET /v1/approvals`: lists pending approvals. */
export function handleApprovals({ broker }: Call): object {
  return listApprovals(broker);
}

/** `POST /v1/approvals/:id`: takes a person's decision. */
export async function handleDecision(call: Call<ApprovalDecisionRequest, Request>): Promise<object> {
  const reply = await decideApproval(call.broker, idOf(call.request), call.body.decision);
  if (!isRefusal(reply)) call.log.info(reply, "A question was answered");
  return reply;
}

/** `POST /v1/approvals/:id/preview`: runs the command isolated and shows the changes. */
export async function handlePreview({ broker, request }: Call<object, Request>): Promise<object> {
  return (await broker.activity.during(() => previewApproval(broker, idOf(request)))) ?? stopping();
}

function idOf(request: Request): string {
  return String(request.params["approval_id"]);
}
