import type { Approval } from "../../../schemas/generated/types.ts";
import { approvalLines } from "../words/approval-words.ts";
import { coloursFor } from "../words/colours.ts";
import { hasDesktop, notify } from "../questions/desktop.ts";
import { answer, decided, isSomebodyHere, say } from "../questions/prompt.ts";
import { eachQuestion } from "../questions/questions.ts";
import { printRows } from "../terminal/rows.ts";
import { questionBegin } from "../terminal/screen-reset.ts";
import { harmlessJson, printLine, type Terminal } from "../terminal/terminal.ts";
import { waitWords } from "./approvals.ts";

/** 128 + SIGINT. */
const EXIT_LEFT = 130;

/** Shows each question as it comes, those that wait already first; a person at the terminal answers each in turn. */
export async function watchApprovals(terminal: Terminal, json: boolean): Promise<number> {
  const over = new AbortController();
  const leave = (): void => over.abort();
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, leave);
  const isHere = isSomebodyHere(terminal) && !json;
  if (!json) terminal.err.write("substrate: waiting for questions; Ctrl-C ends it\n");
  await eachQuestion(
    terminal,
    over.signal,
    async (approval, gone) => {
      if (!isHere) print(terminal, approval, json);
      else if (!(await askedHere(terminal, approval, gone))) leave();
    },
    () => true,
    (approval) => {
      if (hasDesktop(terminal)) notify(terminal, approval);
    },
  );
  return EXIT_LEFT;
}

function print(terminal: Terminal, approval: Approval, json: boolean): void {
  if (json) return printLine(terminal, harmlessJson(JSON.stringify(approval)));
  const colours = coloursFor(terminal);
  printLine(terminal, `${colours.bold(approval.approval_id)}  ${waitWords(approval)}`);
  for (const line of approvalLines(colours, approval)) printRows(terminal, line);
  printLine(terminal);
}

/** False: the person left without an answer, and the question goes on waiting. */
async function askedHere(terminal: Terminal, approval: Approval, gone: AbortSignal): Promise<boolean> {
  terminal.err.write(questionBegin(terminal));
  say(terminal, ["", `${approval.approval_id}  ${waitWords(approval)}`]);
  const decision = await decided(terminal, approval, gone);
  if (decision === undefined && !gone.aborted) return false;
  const counts = decision !== undefined && (await answer(terminal, approval, decision));
  say(terminal, [counts ? `  ${WORDS[decision]}` : "  answered elsewhere, or expired"]);
  return true;
}

const WORDS = {
  once: "approved, once",
  session: "approved for its session",
  always: "approved permanently: written to approvals.yaml",
  deny: "denied",
} as const;
