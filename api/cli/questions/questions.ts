/** Polls the broker for pending questions. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Approval, ApprovalsReply } from "../../../schemas/generated/types.ts";
import { ask } from "../terminal/replies.ts";
import type { Terminal } from "../terminal/terminal.ts";

const POLL_MS = 250;

/**
 * Pause after a question that ended by itself: an answer that a person was about to give must not meet the next question, which an agent
 * may have timed. What is typed meanwhile is forgotten (`typedLine`).
 */
const CALM_MS = 1500;

type Waiting = { readonly approval: Approval; readonly gone: AbortController };

/**
 * Passes each pending question to `each` once, one at a time, oldest first, until `over` aborts. Questions rejected by `isMeant` are
 * tested again later: a call may join an older question. `gone` aborts when the question is answered elsewhere or ends. Throws the
 * broker's errors, and an error after the broker's end. `onNew` is called as soon as a question appears.
 */
export async function eachQuestion(
  terminal: Terminal,
  over: AbortSignal,
  each: (approval: Approval, gone: AbortSignal) => Promise<void>,
  isMeant: (approval: Approval) => boolean = () => true,
  onNew: (approval: Approval) => void = () => {},
): Promise<void> {
  const waiting = new Map<string, Waiting>();
  const left = new AbortController();
  const failed = new AbortController();
  const end = AbortSignal.any([over, failed.signal, left.signal]);
  const following = follow(terminal, waiting, end, onNew).catch((error: unknown) => failed.abort(error));
  const told = new Set<string>();
  try {
    while (!end.aborted) {
      const next = [...waiting.values()].find(
        (one) => !told.has(one.approval.approval_id) && isReady(one) && isMeant(one.approval),
      );
      if (next === undefined) await pause(end);
      else {
        told.add(next.approval.approval_id);
        await each(next.approval, AbortSignal.any([next.gone.signal, end]));
        if (next.gone.signal.aborted) await pause(end, CALM_MS);
      }
    }
  } finally {
    left.abort();
    await following;
  }
  if (failed.signal.aborted) throw failed.signal.reason;
}

/** Whether the question's preview is ready: with a preview required by policy, the changes are part of the question. */
function isReady({ approval }: Waiting): boolean {
  return approval.preview.state !== "running";
}

/** Keeps `waiting` equal to the broker's list until `end` aborts. */
async function follow(
  terminal: Terminal,
  waiting: Map<string, Waiting>,
  end: AbortSignal,
  onNew: (approval: Approval) => void,
): Promise<void> {
  while (!end.aborted) {
    const { approvals } = await ask<ApprovalsReply>(terminal, "/v1/approvals");
    const ids = new Set(approvals.map(({ approval_id: id }) => id));
    for (const [id, { gone }] of waiting) {
      if (ids.has(id)) continue;
      waiting.delete(id);
      gone.abort();
    }
    for (const approval of approvals) {
      if (!waiting.has(approval.approval_id)) onNew(approval);
      const { gone = new AbortController() } = waiting.get(approval.approval_id) ?? {};
      waiting.set(approval.approval_id, { approval, gone });
    }
    await pause(end);
  }
}

async function pause(end: AbortSignal, ms = POLL_MS): Promise<void> {
  await sleep(ms, undefined, { signal: end }).catch(() => {
    // Aborted sleep, ignoring: the loop checks `end` itself.
  });
}
