import type {
  Approval,
  ApprovalDecisionReply,
  ApprovalPreviewReply,
  ApprovalsReply,
} from "../../../schemas/generated/types.ts";
import { approvalLines, previewWords } from "../words/approval-words.ts";
import { coloursFor } from "../words/colours.ts";
import { isSomebodyHere, say, typedLine } from "../questions/prompt.ts";
import { ask, tell } from "../terminal/replies.ts";
import { printRows, sayRows } from "../terminal/rows.ts";
import { questionBegin } from "../terminal/screen-reset.ts";
import {
  Complaint,
  EXIT_SUBSTRATE,
  harmlessLine,
  printJson,
  printLine,
  type Terminal,
} from "../terminal/terminal.ts";

export type ApproveOptions = {
  readonly once?: boolean;
  readonly session?: boolean;
  readonly always?: boolean;
  readonly yes?: boolean;
};

const GRANTS = ["once", "session", "always"] as const;

/** What waits for an answer: who asks for what, why, and since when. */
export async function listApprovals(terminal: Terminal, json: boolean): Promise<number> {
  const reply = await ask<ApprovalsReply>(terminal, "/v1/approvals");
  if (json) printJson(terminal, reply);
  else show(terminal, reply);
  return 0;
}

/** Tries out what waits, and says what it would change. */
export async function previewApproval(terminal: Terminal, id: string, json: boolean): Promise<number> {
  const reply = await tell<ApprovalPreviewReply>(terminal, `${pathOf(id)}/preview`, {});
  if (json) printJson(terminal, reply);
  else printRows(terminal, previewWords(reply.preview));
  return 0;
}

/**
 * Says yes, for as long as exactly one option says. Shows first what is approved, and asks at a terminal: the id often comes from the agent,
 * and may be another question's.
 */
export async function approve(terminal: Terminal, id: string, options: ApproveOptions): Promise<number> {
  const [decision, another] = GRANTS.filter((grant) => options[grant] === true);
  if (decision === undefined || another !== undefined)
    throw new Complaint(
      "Cannot approve without a duration: give exactly one of --once, --session and --always",
    );
  const { approvals } = await ask<ApprovalsReply>(terminal, "/v1/approvals");
  const approval = approvals.find((one) => one.approval_id === id);
  if (approval !== undefined) terminal.err.write(questionBegin(terminal));
  for (const line of approval === undefined ? [] : approvalLines(coloursFor(terminal), approval))
    sayRows(terminal, line);
  if (approval !== undefined && options.yes !== true && isSomebodyHere(terminal)) {
    const typed = await typedLine(terminal, `Approve it (${decision})? y)es n)o [n] `);
    if (!/^y(?:es)?$/i.test(typed?.trim() ?? "")) {
      say(terminal, ["Nothing is approved; it still waits"]);
      return EXIT_SUBSTRATE;
    }
  }
  const { released } = await tell<ApprovalDecisionReply>(terminal, pathOf(id), { decision });
  const then = released === 0 ? "send the same call again to run it" : waited(released, "goes on");
  printLine(terminal, `Approved (${decision}): ${then}`);
  return 0;
}

/** Says no. */
export async function deny(terminal: Terminal, id: string): Promise<number> {
  const { released } = await tell<ApprovalDecisionReply>(terminal, pathOf(id), { decision: "deny" });
  printLine(terminal, released === 0 ? "Denied" : `Denied: ${waited(released, "is refused")}`);
  return 0;
}

function show(terminal: Terminal, { approvals, problems }: ApprovalsReply): void {
  for (const problem of problems)
    printRows(
      terminal,
      `approvals.yaml does not load, so none of its approvals apply: ${harmlessLine(problem)}`,
    );
  if (approvals.length === 0) return printLine(terminal, "No command waits for approval");
  for (const approval of approvals) {
    printLine(terminal, `${coloursFor(terminal).bold(approval.approval_id)}  ${waitWords(approval)}`);
    for (const line of approvalLines(coloursFor(terminal), approval)) printRows(terminal, line);
    printLine(terminal);
  }
  printLine(terminal, "substrate approve ID --once|--session|--always, or substrate deny ID");
}

export function waitWords({ asked_at: asked, expires_at: expires, waiting }: Approval): string {
  const now = Date.now();
  const age = Math.max(0, Math.round((now - Date.parse(asked)) / 1000));
  const rest = Math.max(0, Math.round((Date.parse(expires) - now) / 1000));
  return `asked ${age} s ago, expires in ${rest} s${waiting === 0 ? "" : `, ${waited(waiting, "waits")}`}`;
}

function waited(calls: number, verb: string): string {
  return `${calls === 1 ? "1 call that waits" : `${calls} calls that wait`} ${verb === "waits" ? "for it" : verb}`;
}

function pathOf(id: string): string {
  return `/v1/approvals/${encodeURIComponent(id)}`;
}
