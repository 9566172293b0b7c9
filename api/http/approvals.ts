import type { Request, Response } from "express";
import { decideApproval, listApprovals, previewApproval } from "../../broker/journey/operate-approvals.ts";
import { isRefusal, type Refusal, refusal } from "../../broker/model/refusal.ts";
import type { ApprovalDecisionRequest } from "../../schemas/generated/types.ts";
import { validateApprovalDecisionRequest } from "../../schemas/generated/validators.js";
import { sendJson, sendRefusal } from "./answer.ts";
import type { Context } from "./context.ts";
import { noFields, validDocument, type Validator } from "./valid-request.ts";

/** `GET /v1/approvals`: what waits for a person. */
export function handleApprovals({ broker }: Context, _request: Request, response: Response): void {
  sendJson(response, 200, listApprovals(broker));
}

/** `POST /v1/approvals/:id`: a person's answer. */
export async function handleDecision(
  { broker, log }: Context,
  request: Request,
  response: Response,
): Promise<void> {
  const validate: Validator<ApprovalDecisionRequest> = validateApprovalDecisionRequest;
  const body = await validDocument(request, validate);
  if (isRefusal(body)) return sendRefusal(response, body);
  const reply = await decideApproval(broker, idOf(request), body.valid.decision);
  if (!isRefusal(reply)) log.info(reply, "A question is answered");
  send(response, reply);
}

/** `POST /v1/approvals/:id/preview`: what the command would change. */
export async function handlePreview(
  { broker }: Context,
  request: Request,
  response: Response,
): Promise<void> {
  const strange = await noFields(request);
  if (strange !== undefined) return sendRefusal(response, strange);
  const reply = await broker.activity.during(() => previewApproval(broker, idOf(request)));
  send(response, reply ?? stopping());
}

function idOf(request: Request): string {
  return String(request.params["approval_id"]);
}

function send(response: Response, reply: object | Refusal): void {
  if (isRefusal(reply)) sendRefusal(response, reply);
  else sendJson(response, 200, reply);
}

function stopping(): Refusal {
  return refusal("busy", "The broker is stopping", "Try again once it runs", { retry_after_ms: 1000 });
}
