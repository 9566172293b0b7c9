/** Calls of `substrate exec` waiting for approval of the command or of a program started by the command. */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Approval, ApprovalsReply } from "../../../schemas/generated/types.ts";
import type { Answer } from "../../client/client.ts";
import { answer, decided, isSomebodyHere, say } from "./prompt.ts";
import { eachQuestion } from "./questions.ts";
import { questionBegin } from "../terminal/screen-reset.ts";
import { borrowed } from "../terminal/raw-mode.ts";
import { ask, errorOf } from "../terminal/replies.ts";
import { Complaint, EXIT_DENIED, type Terminal } from "../terminal/terminal.ts";

/** Longest wait accepted in a request; the policy's `approval.timeout_secs` ends questions sooner. */
export const LONGEST_WAIT_MS = 86_400_000;

/** Delay before the first look at pending questions; most commands have ended by then. */
const FIRST_LOOK_MS = 100;

/** Pause between an unanswered question and the next call. */
const AGAIN_MS = 1000;

/** Pause between looks at questions that wait. */
const WAITING_MS = 250;

export type Asking = {
  /** Body of the request. */
  readonly body: Readonly<Record<string, unknown>>;
  /** `--wait`: wait without limit until a person answers, on any terminal. */
  readonly wait: boolean;
  /** `--json`: no dialogue on standard error. */
  readonly silent: boolean;
  /** The command uses the terminal's input, so nobody can type an answer. */
  readonly inputTaken: boolean;
};

/** Makes the call, with `x-request-id` if given. Returns the answer, or an exit code after a signal ended the wait. */
type Send = (body: object, requestId?: string) => Promise<Answer | number>;

/**
 * Makes a call and puts the call's questions to the person at the terminal. Without a person and without `--wait`, the call does not
 * wait for approval. Returns the answer, or the exit code of a denial typed at the terminal.
 */
export async function askingHere(terminal: Terminal, asking: Asking, send: Send): Promise<Answer | number> {
  const isHere = isSomebodyHere(terminal) && !asking.silent && !asking.inputTaken;
  if (!isHere && !asking.wait) return await send(asking.body);
  for (;;) {
    const { answer, deniedHere } = await withQuestions(terminal, asking, isHere, send);
    if (typeof answer === "number") return answer;
    const code = answer.status === 200 ? undefined : errorOf(answer).code;
    if (code === "approval_denied" && deniedHere) {
      terminal.err.write("substrate: denied; nothing ran\n");
      return EXIT_DENIED;
    }
    if (code !== "approval_required" || !asking.wait) return answer;
    terminal.err.write("substrate: no answer in time; asking again\n");
    await sleep(AGAIN_MS);
  }
}

/**
 * Puts the questions of another process's call to the person at the terminal, until none waits or SIGTERM. Resolves with the exit code of
 * a denial where one was typed, else 0.
 */
export async function askAboutCall(terminal: Terminal, call: string): Promise<number> {
  const over = new AbortController();
  process.once("SIGTERM", () => over.abort());
  // Ctrl-C outside a question is the command's.
  process.on("SIGINT", () => {});
  let deniedHere = false;
  const isOurs = ({ calls }: Approval): boolean => calls.includes(call);
  untilNoneWaits(terminal, isOurs, over.signal).then(
    () => over.abort(),
    () => over.abort(),
  );
  await eachQuestion(
    terminal,
    over.signal,
    async (approval, gone) => {
      deniedHere = (await askHere(terminal, approval, gone)) || deniedHere;
    },
    isOurs,
  );
  return deniedHere ? EXIT_DENIED : 0;
}

async function untilNoneWaits(
  terminal: Terminal,
  isOurs: (approval: Approval) => boolean,
  over: AbortSignal,
): Promise<void> {
  while (!over.aborted) {
    const { approvals } = await ask<ApprovalsReply>(terminal, "/v1/approvals");
    if (!approvals.some(isOurs)) return;
    await sleep(WAITING_MS);
  }
}

async function withQuestions(
  terminal: Terminal,
  asking: Asking,
  isHere: boolean,
  send: Send,
): Promise<{ readonly answer: Answer | number; readonly deniedHere: boolean }> {
  const over = new AbortController();
  // Recognise the call's own questions by request id: another caller may have the same agent and folder.
  const id = randomUUID();
  const sent = send({ ...asking.body, approval_wait_ms: LONGEST_WAIT_MS }, id).finally(() => over.abort());
  const isOurs = ({ calls }: Approval): boolean => calls.includes(id);
  let deniedHere = false;
  const put = async (approval: Approval, gone: AbortSignal): Promise<void> => {
    if (isHere) deniedHere = (await askHere(terminal, approval, gone)) || deniedHere;
    else if (!asking.silent) sayWaiting(terminal, approval);
  };
  const questions = sleep(FIRST_LOOK_MS, undefined, { signal: over.signal })
    .then(() => eachQuestion(terminal, over.signal, put, isOurs))
    // A failed look at the questions, ignoring: the call itself reports a broken broker, and may be over.
    .catch(() => {});
  const answer = await sent;
  await questions;
  return { answer, deniedHere };
}

/** Asks the person at the terminal; true for a denial. */
async function askHere(terminal: Terminal, approval: Approval, gone: AbortSignal): Promise<boolean> {
  const giveBack = borrowed();
  terminal.err.write(questionBegin(terminal));
  say(terminal, ["A person must approve this first"]);
  const decision = (await decided(terminal, approval, gone).finally(giveBack)) ?? "deny";
  try {
    if (!gone.aborted && (await answer(terminal, approval, decision))) return decision === "deny";
    say(terminal, ["substrate: the question was answered elsewhere or has expired"]);
  } catch (error) {
    if (!(error instanceof Complaint)) throw error;
    // The broker refused the answer, for example on a full disk: the question stays pending for other terminals.
    say(terminal, [`substrate: ${error.message}`]);
    sayWaiting(terminal, approval);
  }
  return false;
}

function sayWaiting({ err }: Terminal, { approval_id: id }: Approval): void {
  err.write(
    `substrate: waiting for approval: 'substrate approve ${id} --once' or 'substrate deny ${id}' answers, 'substrate approvals' shows the question\n`,
  );
}
