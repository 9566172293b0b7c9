/** A call of `substrate exec` whose command, or a program that it starts, a person must approve. */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Approval } from "../../../schemas/generated/types.ts";
import type { Answer } from "../../client/client.ts";
import { answer, decided, isSomebodyHere, say } from "./prompt.ts";
import { eachQuestion } from "./questions.ts";
import { errorOf } from "../terminal/replies.ts";
import { Complaint, EXIT_DENIED, type Terminal } from "../terminal/terminal.ts";

/** The longest wait that a request can ask for; questions end sooner, by their policy's `approval.timeout_secs`. */
export const LONGEST_WAIT_MS = 86_400_000;

/** Before the first look at what waits: most commands are over by then. */
const FIRST_LOOK_MS = 100;

/** Between a question that nobody answered and the next one. */
const AGAIN_MS = 1000;

export type Asking = {
  /** The body that is sent. */
  readonly body: Readonly<Record<string, unknown>>;
  /** `--wait`: until a person answers, here or anywhere, however long that takes. */
  readonly wait: boolean;
  /** `--json`: standard error is not a dialogue. */
  readonly silent: boolean;
  /** Nothing that is typed could be an answer. */
  readonly inputTaken: boolean;
};

/** Makes the call, under an `x-request-id` if one is given: its answer, or the exit code of whoever ended the wait. */
type Send = (body: object, requestId?: string) => Promise<Answer | number>;

/**
 * Makes a call that waits for a person, if one sits here or `--wait` was said, and puts its questions to the person here.
 * Returns its answer, or the exit code of a denial that was given here.
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
    terminal.err.write("substrate: nobody answered in time; asking again\n");
    await sleep(AGAIN_MS);
  }
}

async function withQuestions(
  terminal: Terminal,
  asking: Asking,
  isHere: boolean,
  send: Send,
): Promise<{ readonly answer: Answer | number; readonly deniedHere: boolean }> {
  const over = new AbortController();
  // Neither the agent's name nor the folder says whose question it is: another caller may have both.
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
    // The call itself says what is wrong with the broker, ignoring: and it may be over.
    .catch(() => {});
  const answer = await sent;
  await questions;
  return { answer, deniedHere };
}

/** Whether the person here said no. */
async function askHere(terminal: Terminal, approval: Approval, gone: AbortSignal): Promise<boolean> {
  say(terminal, ["A person must approve this first"]);
  const decision = (await decided(terminal, approval, gone)) ?? "deny";
  try {
    if (!gone.aborted && (await answer(terminal, approval, decision))) return decision === "deny";
    say(terminal, ["substrate: it was answered elsewhere, or is over"]);
  } catch (error) {
    if (!(error instanceof Complaint)) throw error;
    // A full disk, say: the question goes on waiting, and can be answered from elsewhere.
    say(terminal, [`substrate: ${error.message}`]);
    sayWaiting(terminal, approval);
  }
  return false;
}

function sayWaiting({ err }: Terminal, { approval_id: id }: Approval): void {
  err.write(
    `substrate: waits for a person: 'substrate approve ${id} --once' or 'substrate deny ${id}' answers, 'substrate approvals' shows what it asks\n`,
  );
}
