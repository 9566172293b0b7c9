/** Asking the person at this terminal, where there is one, whether a command may run. */
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import type {
  Approval,
  ApprovalDecision,
  ApprovalPreviewReply,
  ApprovalsReply,
} from "../../schemas/generated/types.ts";
import { type Answer, call } from "../client.ts";
import { approvalLines, previewWords } from "./approval-words.ts";
import { type Colours, coloursFor } from "./colours.ts";
import { ask, errorOf, tell, wordsOf } from "./replies.ts";
import { Complaint, EXIT_DENIED, type Terminal } from "./terminal.ts";

/** What was typed, or sent by the terminal, before the question could be read is no answer to it. */
const TYPED_AHEAD_MS = 60;

type Choice = ApprovalDecision | "preview";

const KEYS: Readonly<Record<Choice, string>> = {
  once: "o)nce",
  session: "s)ession",
  always: "a)lways",
  deny: "d)eny",
  preview: "p)review",
};

/**
 * Makes a call; when a person must approve it and one sits here, asks, and makes it again for as long as they say yes.
 * Returns the last answer, or the exit code of a denial.
 */
export async function askingHere(
  terminal: Terminal,
  send: () => Promise<Answer | number>,
): Promise<Answer | number> {
  for (;;) {
    const answer = await send();
    const id = typeof answer === "number" ? undefined : questionOf(answer);
    if (id === undefined || !isSomebodyHere(terminal)) return answer;
    const { approvals } = await ask<ApprovalsReply>(terminal, "/v1/approvals");
    const approval = approvals.find(({ approval_id }) => approval_id === id);
    if (approval === undefined) return answer;
    const decision = await decided(terminal, approval);
    await answered(terminal, id, decision);
    if (decision !== "deny") continue;
    terminal.err.write("substrate: denied; nothing ran\n");
    return EXIT_DENIED;
  }
}

/** A yes to a question that ended meanwhile counts for nothing; the call is made again and says how it ended. */
async function answered(terminal: Terminal, id: string, decision: ApprovalDecision): Promise<void> {
  const path = `/v1/approvals/${encodeURIComponent(id)}`;
  const answer = await call(terminal.home.controlSocket, "POST", path, { decision });
  const isOver = answer.status === 404 || answer.status === 409;
  if (answer.status !== 200 && !(isOver && decision !== "deny")) throw new Complaint(wordsOf(answer));
}

function questionOf(answer: Answer): string | undefined {
  if (answer.status === 200) return undefined;
  const { code, approval_id: id } = errorOf(answer);
  return code === "approval_required" ? id : undefined;
}

/** Whether a person sits at both ends: they see a question, and can answer it. */
export function isSomebodyHere({ stdin, err }: Terminal): boolean {
  return stdin.isTTY === true && err.isTTY === true;
}

async function decided(terminal: Terminal, approval: Approval): Promise<ApprovalDecision> {
  const colours = coloursFor(terminal);
  const offers: readonly Choice[] =
    approval.kind === "command" ? [...approval.offers, "preview"] : approval.offers;
  say(terminal, ["A person must approve this first", ...approvalLines(colours, approval)]);
  for (;;) {
    const choice = await chosen(terminal, colours, offers);
    if (choice !== "preview") return choice;
    say(terminal, ["  trying it out on an overlay …"]);
    const path = `/v1/approvals/${encodeURIComponent(approval.approval_id)}/preview`;
    const { preview } = await tell<ApprovalPreviewReply>(terminal, path, {});
    say(terminal, [`  preview  ${previewWords(preview)}`]);
  }
}

/** The choice whose first letter or word was typed; everything else, Ctrl-C and the end of input are no. */
async function chosen(terminal: Terminal, colours: Colours, offers: readonly Choice[]): Promise<Choice> {
  const question = `${offers.map((offer) => KEYS[offer]).join(" ")} [${colours.bold("d")}] `;
  const typed = (await typedLine(terminal, question)).trim().toLowerCase();
  return offers.find((offer) => typed === offer || typed === offer[0]) ?? "deny";
}

/** A line typed in answer to a question, asked on standard error; empty for Ctrl-C and the end of input. */
export async function typedLine(terminal: Terminal, question: string): Promise<string> {
  await forgetTypedAhead(terminal);
  const lines = createInterface({
    input: terminal.stdin,
    output: terminal.err,
    terminal: true,
    historySize: 0,
  });
  try {
    return await new Promise<string>((resolve) => {
      const unanswered = (): void => {
        terminal.err.write("\n");
        resolve("");
      };
      lines.once("SIGINT", unanswered).once("close", unanswered);
      lines.question(question, (line) => {
        lines.off("close", unanswered);
        resolve(line);
      });
    });
  } finally {
    lines.removeAllListeners("close");
    lines.close();
  }
}

async function forgetTypedAhead({ stdin }: Terminal): Promise<void> {
  const forget = (): void => {};
  stdin.setRawMode(true);
  stdin.on("data", forget);
  await sleep(TYPED_AHEAD_MS);
  stdin.off("data", forget);
  stdin.pause();
  stdin.setRawMode(false);
}

function say(terminal: Terminal, lines: readonly string[]): void {
  for (const line of lines) terminal.err.write(`${line}\n`);
}
