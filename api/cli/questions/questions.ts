/** Questions that wait for a person, handed on as they come. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Approval, ApprovalsReply } from "../../../schemas/generated/types.ts";
import { ask } from "../terminal/replies.ts";
import type { Terminal } from "../terminal/terminal.ts";

const POLL_MS = 250;

type Waiting = { readonly approval: Approval; readonly gone: AbortController };

/**
 * Hands each question that waits to `each` once, one after the other and the oldest first, until `over` aborts. Questions that `isMeant`
 * rejects are looked at again later: a call may come to wait for one that stood before it. `gone` aborts when the question was answered
 * elsewhere or has ended. Throws what the broker says, and when it is gone.
 */
export async function eachQuestion(
  terminal: Terminal,
  over: AbortSignal,
  each: (approval: Approval, gone: AbortSignal) => Promise<void>,
  isMeant: (approval: Approval) => boolean = () => true,
): Promise<void> {
  const waiting = new Map<string, Waiting>();
  const left = new AbortController();
  const failed = new AbortController();
  const end = AbortSignal.any([over, failed.signal, left.signal]);
  const following = follow(terminal, waiting, end).catch((error: unknown) => failed.abort(error));
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
      }
    }
  } finally {
    left.abort();
    await following;
  }
  if (failed.signal.aborted) throw failed.signal.reason;
}

/** What the command would change is part of the question, where the policy has it tried out first. */
function isReady({ approval }: Waiting): boolean {
  return approval.preview.state !== "running";
}

/** Keeps `waiting` as the broker's own list is, until `end` aborts. */
async function follow(terminal: Terminal, waiting: Map<string, Waiting>, end: AbortSignal): Promise<void> {
  while (!end.aborted) {
    const { approvals } = await ask<ApprovalsReply>(terminal, "/v1/approvals");
    const ids = new Set(approvals.map(({ approval_id: id }) => id));
    for (const [id, { gone }] of waiting) {
      if (ids.has(id)) continue;
      waiting.delete(id);
      gone.abort();
    }
    for (const approval of approvals) {
      const { gone = new AbortController() } = waiting.get(approval.approval_id) ?? {};
      waiting.set(approval.approval_id, { approval, gone });
    }
    await pause(end);
  }
}

async function pause(end: AbortSignal): Promise<void> {
  await sleep(POLL_MS, undefined, { signal: end }).catch(() => {
    // It is over, ignoring: the loop looks for itself.
  });
}
