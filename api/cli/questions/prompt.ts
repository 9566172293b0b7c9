/** Asks the person at the terminal a question and reads the typed answer. */
import { createInterface, type Interface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import type { Approval, ApprovalDecision, ApprovalPreviewReply } from "../../../schemas/generated/types.ts";
import { call } from "../../client/client.ts";
import { approvalLines, previewWords } from "../words/approval-words.ts";
import { type Colours, coloursFor } from "../words/colours.ts";
import { tell, wordsOf } from "../terminal/replies.ts";
import { sayRows } from "../terminal/rows.ts";
import { Complaint, type Terminal } from "../terminal/terminal.ts";

/** Time to discard input from before the question: typed or sent by the terminal too early to be an answer. */
const TYPED_AHEAD_MS = 60;

type Choice = ApprovalDecision | "preview";

const KEYS: Readonly<Record<Choice, { readonly shown: string; readonly typed: readonly string[] }>> = {
  once: { shown: "y)es, once", typed: ["y", "yes", "o", "once"] },
  session: { shown: "s)ession", typed: ["s", "session"] },
  always: { shown: "a)lways", typed: ["a", "always"] },
  deny: { shown: "n)o", typed: ["n", "no", "d", "deny"] },
  preview: { shown: "p)review", typed: ["p", "preview"] },
};

/** Whether stdin and stderr are terminals, so a person can see and answer questions. */
export function isSomebodyHere({ stdin, err }: Terminal): boolean {
  return stdin.isTTY === true && err.isTTY === true;
}

export function say(terminal: Terminal, lines: readonly string[]): void {
  for (const line of lines) sayRows(terminal, line);
}

/**
 * Shows a question and reads the answer; unknown input counts as no. Undefined without an answer, after Ctrl-C, the end of input,
 * or `gone`.
 */
export async function decided(
  terminal: Terminal,
  approval: Approval,
  gone: AbortSignal,
): Promise<ApprovalDecision | undefined> {
  const colours = coloursFor(terminal);
  const offers: readonly Choice[] =
    approval.kind === "command" ? [...approval.offers, "preview"] : approval.offers;
  say(terminal, approvalLines(colours, approval));
  for (;;) {
    const typed = await typedLine(terminal, questionWords(colours, offers), gone);
    if (typed === undefined) return undefined;
    const choice = offers.find((offer) => KEYS[offer].typed.includes(typed.trim().toLowerCase())) ?? "deny";
    if (choice !== "preview") return choice;
    say(terminal, ["  running it on an overlay …"]);
    say(terminal, [`  ${"preview".padEnd(8)} ${await previewed(terminal, approval)}`]);
  }
}

/** Describes the changes of the command by a preview, or the reason for a missing preview. */
async function previewed(terminal: Terminal, approval: Approval): Promise<string> {
  try {
    const { preview } = await tell<ApprovalPreviewReply>(terminal, `${pathOf(approval)}/preview`, {});
    return previewWords(preview);
  } catch (error) {
    if (!(error instanceof Complaint)) throw error;
    return error.message;
  }
}

/** Sends the decision. False if the question was over before. Throws {@link Complaint} for other errors of the broker. */
export async function answer(
  { home }: Terminal,
  approval: Approval,
  decision: ApprovalDecision,
): Promise<boolean> {
  const { status, document } = await call(home.controlSocket, "POST", pathOf(approval), { decision });
  if (status === 200) return true;
  if (status === 404 || status === 409) return false;
  throw new Complaint(wordsOf({ status, document }));
}

function pathOf({ approval_id: id }: Approval): string {
  return `/v1/approvals/${encodeURIComponent(id)}`;
}

function questionWords(colours: Colours, offers: readonly Choice[]): string {
  return `${offers.map((offer) => KEYS[offer].shown).join("  ")} [${colours.bold("n")}] `;
}

/** Asks a question on standard error; anything but `y` or `yes` is a no. */
export async function typedYes(terminal: Terminal, question: string): Promise<boolean> {
  const typed = ((await typedLine(terminal, `${question} y)es [n] `)) ?? "").trim().toLowerCase();
  return typed === "y" || typed === "yes";
}

/** Asks a question on standard error and reads a line; undefined after Ctrl-C, the end of input, or `gone`. */
export async function typedLine(
  terminal: Terminal,
  question: string,
  gone: AbortSignal = new AbortController().signal,
): Promise<string | undefined> {
  await forgetTypedAhead(terminal);
  if (gone.aborted) return undefined;
  const lines = createInterface({
    input: terminal.stdin,
    output: terminal.err,
    terminal: true,
    historySize: 0,
  });
  try {
    return await new Promise<string | undefined>((resolve) => {
      const unanswered = (): void => {
        terminal.err.write("\n");
        resolve(undefined);
      };
      gone.addEventListener("abort", unanswered, { once: true });
      lines.once("SIGINT", unanswered).once("close", unanswered);
      lines.on("SIGTSTP", () => stopJob(terminal, lines));
      lines.question(question, (line) => {
        gone.removeEventListener("abort", unanswered);
        lines.off("close", unanswered);
        resolve(line);
      });
    });
  } finally {
    lines.removeAllListeners("close");
    lines.close();
  }
}

/** Ctrl-Z: readline would stop this process alone, and the native front beside it would not answer Ctrl-C any more. */
function stopJob({ stdin }: Terminal, lines: Interface): void {
  stdin.setRawMode(false);
  process.kill(0, "SIGTSTP");
  stdin.setRawMode(true);
  lines.prompt(true);
}

async function forgetTypedAhead({ stdin }: Terminal): Promise<void> {
  const forget = (): void => {};
  stdin.setRawMode(true);
  stdin.on("data", forget);
  // The question before has paused it, and a listener alone does not start it again.
  stdin.resume();
  await sleep(TYPED_AHEAD_MS);
  stdin.off("data", forget);
  stdin.pause();
  stdin.setRawMode(false);
}
