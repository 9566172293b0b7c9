/** The last message of a stream: how the command ended, with the sentences that a terminal shows after the output. */
import type { Outcome } from "../../broker/model/outcome.ts";
import type { ExecuteReply, Notice } from "../../schemas/generated/types.ts";
import { observedWords } from "./observed-words.ts";

export type ExitMessage = Omit<ExecuteReply, "stdout_b64" | "stderr_b64"> & {
  readonly type: "exit";
  /** Verdict, notices and hint as sentences for a terminal; notices already in stderr are left out. */
  readonly lines: readonly string[];
};

export function exitMessage(outcome: Extract<Outcome, { kind: "ran" }>): ExitMessage {
  const { stdout_b64: _stdout, stderr_b64, ...reply } = outcome.reply;
  // The kept part of the output may be cut; the stream is whole.
  return { type: "exit", ...reply, truncated: false, lines: linesOf(outcome.reply, stderr_b64) };
}

function linesOf(reply: ExecuteReply, stderr: string): readonly string[] {
  const observed = observedWords(reply);
  return [
    ...(observed === undefined ? [] : [observed]),
    ...noticesNotSaid(reply, Buffer.from(stderr, "base64").toString()),
    ...(reply.hint === null ? [] : [reply.hint]),
  ];
}

/** The notices that neither standard error nor the hint about held changes says. */
function noticesNotSaid({ notices }: ExecuteReply, said: string): readonly string[] {
  return notices.filter(({ kind, message }) => kind !== "held" && !said.includes(message)).map(noticeWords);
}

/** A notice as a line for a terminal. */
export function noticeWords({ kind, message, count }: Notice): string {
  return count === 1 || kind === "world_only" ? message : `${message} (${count} times)`;
}
