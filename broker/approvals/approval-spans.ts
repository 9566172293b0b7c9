/** Trace lines about approval questions. */
import type { ApprovalPreview } from "../../schemas/generated/types.ts";
import { eventSpan } from "../spans/event-span.ts";
import type { SpanRecord } from "../spans/trace.ts";
import type { QuestionEnd } from "./pending.ts";
import type { Question } from "./question.ts";

/** Endings by a person's answer; only the operator's socket can give an answer. */
const ANSWERS: ReadonlySet<string> = new Set(["once", "session", "always", "deny"]);

/** Builds the line of one event of a question, below the span of the asking call. */
export function approvalSpan(
  { id, question }: { readonly id: string; readonly question: Question },
  event: QuestionEnd | "asked" | "previewed",
  preview: ApprovalPreview | undefined,
): SpanRecord {
  return eventSpan({
    event_type: "approval",
    session_id: question.session,
    parent_span: question.span,
    policy_id: question.policyId,
    policy_hash: question.policyHash,
    agent_id: question.agent,
    cwd: question.cwd,
    cmd: question.kind === "command" ? question.recorded : null,
    approval_id: id,
    approval: {
      kind: question.kind,
      event,
      by: ANSWERS.has(event) ? "control.sock" : null,
      subject: question.recorded,
      ...(preview === undefined ? {} : { preview }),
    },
    scopes_used: [],
    decision: { verdict: "ask", mode: question.mode, rule: question.recordedRule },
  });
}
