/** Asks a person, from the question to the answer or the refusal. */
import { because, isRefusal, quoted, type Refusal, refusal } from "../model/refusal.ts";
import type { Approvals } from "./approvals.ts";
import type { Pending, WaitEnd } from "./pending.ts";
import type { Granted, Question } from "./question.ts";

/**
 * Resolves with the answer, or with a refusal: `approval_required` with the question's id after `waitMs` without an answer,
 * `approval_denied`, `policy_changed`, or `busy` when `signal` reports a disconnected caller.
 *
 * `ask` builds the question from the current state and is called again after each wait: an answer counts only for the same
 * question. The call that takes a `once` uses it up.
 */
export async function askPerson(
  approvals: Approvals,
  ask: () => Question | Refusal,
  waitMs: number,
  signal: AbortSignal,
): Promise<Granted | Refusal> {
  const until = performance.now() + waitMs;
  for (;;) {
    const question = ask();
    if (isRefusal(question)) return question;
    const answered = await answerTo(approvals, question);
    if (answered !== undefined) return answered;
    const pending = opened(approvals, question);
    if (isRefusal(pending)) return pending;
    await previewFirst(approvals, pending, question.call, signal);
    const restMs = until - performance.now();
    const waited = pending.wait(restMs, signal, question.call);
    if (restMs > 0) approvals.listeners.tell(question.call, pending.id);
    const end = await waited;
    if (!isYes(end)) return refusalBecause(end, pending);
  }
}

/** Opens the question; a question that cannot be recorded is not asked. */
function opened(approvals: Approvals, question: Question): Pending | Refusal {
  try {
    return approvals.open(question);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return refusal(
      "busy",
      `Nothing ran and nobody was asked: the question cannot be recorded (${why})`,
      "Free space where SUBSTRATE_HOME lies, then ask again",
    );
  }
}

async function answerTo(approvals: Approvals, question: Question): Promise<Granted | Refusal | undefined> {
  const denial = approvals.denial(question);
  if (denial !== undefined) return deniedLately(question, denial);
  const given = approvals.take(question);
  if (given === undefined) return undefined;
  const { approval, how, spent } = given;
  try {
    await spent;
    return { approval, how };
  } catch (error) {
    return cannotSpend(error);
  }
}

/** Waits for the preview before asking the person; ends early when an answer arrives or the caller leaves. */
async function previewFirst(
  approvals: Approvals,
  pending: Pending,
  call: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (!pending.question.previewFirst || pending.hasPreview) return;
  const over = new AbortController();
  const ended = pending.wait(pending.question.timeoutMs, AbortSignal.any([signal, over.signal]), call);
  await Promise.race([approvals.previewOf(pending), ended]);
  over.abort();
}

function isYes(end: WaitEnd): boolean {
  return end === "once" || end === "session" || end === "always";
}

function refusalBecause(end: WaitEnd, { id, question }: Pending): Refusal {
  const facts = { policy_id: question.policyId, rule: question.rule, approval_id: id };
  switch (end) {
    case "deny":
      return refusal("approval_denied", `A person denied ${named(question)}`, DENIED_HINT, facts);
    case "policy_changed":
      return question.outdated() ?? policyChanged(question);
    case "broker_stopped":
      return refusal(
        "busy",
        "The broker is stopping, so nobody can answer",
        "Ask again when the broker runs again",
        {
          retry_after_ms: 1000,
        },
      );
    case "caller_left":
      return refusal("busy", "The client disconnected before a person answered", "Ask again", facts);
    case "expired":
    case "dropped":
      return refusal(
        "approval_required",
        unanswered(end, question),
        "Ask again to put a new question",
        facts,
      );
    default:
      return refusal("approval_required", required(question), requiredHint(question, id), facts);
  }
}

/** Refuses a question asked under an older version of the policy. */
export function policyChanged({ policyHash, policyId }: Pick<Question, "policyHash" | "policyId">): Refusal {
  return refusal(
    "policy_changed",
    `The policy changed after this question was asked under ${policyHash}, so the question is void`,
    "Ask again: the new policy decides about it",
    { policy_id: policyId },
  );
}

/** Refuses a question under the same policy whose folder was replaced or belongs to another project. */
export function folderChanged(cwd: string, policyId: string): Refusal {
  return refusal(
    "policy_changed",
    `The folder ${quoted(cwd)} was replaced, or belongs to another project, since this question was asked, so the question is void`,
    "Ask again to put a question about the folder as it is now",
    { policy_id: policyId },
  );
}

const DENIED_HINT =
  "Do the task another way, or tell the person why you need it and ask again; another spelling asks the same question";

function named({ kind }: Question): string {
  return kind === "command" ? "this command" : "these scopes";
}

function required(question: Question): string {
  return `A person must approve ${named(question)} first${because(question.rule)}`;
}

function requiredHint({ timeoutMs, offers, kind }: Question, id: string): string {
  const secs = Math.round(timeoutMs / 1000);
  const others = offers.filter((how) => how !== "once").map((how) => `--${how}`);
  const or = others.length === 0 ? "" : ` (or ${others.join(", ")})`;
  const wait = kind === "command" ? "approval_wait_ms" : "wait_ms";
  return `Tell the person: 'substrate approve ${id} --once'${or} or 'substrate deny ${id}' answers, within ${secs} s. Then send the same call again; with '${wait}' it waits for the answer`;
}

function unanswered(end: "expired" | "dropped", question: Question): string {
  return end === "expired"
    ? `Nobody answered within ${Math.round(question.timeoutMs / 1000)} s whether ${named(question)} may go on`
    : `The question about ${named(question)} was dropped because too many newer questions are pending`;
}

function deniedLately(
  question: Question,
  { approval, restMs }: { readonly approval: string; readonly restMs: number },
): Refusal {
  return refusal("approval_denied", `A person denied ${named(question)} a moment ago`, DENIED_HINT, {
    policy_id: question.policyId,
    rule: question.rule,
    approval_id: approval,
    retry_after_ms: restMs,
  });
}

function cannotSpend(error: unknown): Refusal {
  const why = error instanceof Error ? error.message : String(error);
  return refusal(
    "busy",
    `Nothing ran: the use of the approval cannot be recorded (${why})`,
    "Free space where SUBSTRATE_HOME lies, then ask again",
  );
}
