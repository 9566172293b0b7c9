/** The last message of a stream: how the command ended, with the sentences that a terminal shows after the output. */
import type { Outcome } from "../../broker/model/outcome.ts";
import type { ExecuteReply, Notice } from "../../schemas/generated/types.ts";
import { observedWords } from "./observed-words.ts";

export type ExitMessage = Omit<ExecuteReply, "stdout_b64" | "stderr_b64"> & {
  readonly type: "exit";
  /** Verdict, notices and hint as sentences for a terminal; notices that the broker itself wrote to stderr are left out. */
  readonly lines: readonly string[];
};

type Ran = Extract<Outcome, { kind: "ran" }>;

export function exitMessage(outcome: Ran): ExitMessage {
  const { stdout_b64: _stdout, stderr_b64: _stderr, ...reply } = outcome.reply;
  // The kept part of the output may be cut; the stream is whole.
  return { type: "exit", ...reply, truncated: false, lines: linesOf(outcome) };
}

function linesOf({ reply, complaint }: Ran): readonly string[] {
  const observed = observedWords(reply);
  return [
    ...(observed === undefined ? [] : [observed]),
    ...noticesNotSaid(reply, complaint?.toString() ?? ""),
    ...(reply.hint === null ? [] : [reply.hint]),
  ];
}

/**
 * The notices that neither the broker's own words on standard error nor the hint about held changes say. The command's own bytes do not
 * count: a command could print the text of a notice and erase it from the screen.
 */
function noticesNotSaid({ notices }: ExecuteReply, said: string): readonly string[] {
  return notices.filter(({ kind, message }) => kind !== "held" && !said.includes(message)).map(noticeWords);
}

/** A notice as a line for a terminal. */
export function noticeWords({ kind, message, count }: Notice): string {
  return count === 1 || kind === "world_only" ? message : `${message} (${count} times)`;
}
