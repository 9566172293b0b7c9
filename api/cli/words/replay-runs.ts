import type { ReplayReply } from "../../../schemas/generated/types.ts";

/** Whether several runs of one command did the same, whatever is on record. A tree that was not hashed is known by its names. */
export function allAlike(replies: readonly ReplayReply[]): boolean {
  return new Set(replies.map(didOf)).size <= 1;
}

/** The runs in groups that did the same: each with the numbers of its runs, from 1. */
export function groupsOf(replies: readonly ReplayReply[]): readonly (readonly number[])[] {
  const groups = new Map<string, number[]>();
  for (const [index, reply] of replies.entries()) {
    const did = didOf(reply);
    groups.set(did, [...(groups.get(did) ?? []), index + 1]);
  }
  return [...groups.values()];
}

function didOf({ results: { now } }: ReplayReply): string {
  const { exit, signal, timed_out, stdout_sha256, stderr_sha256, fs_diff: diff } = now;
  const changes = diff === null ? null : [diff.writes, diff.mods, diff.deletes, diff.dirs, diff.tree_hash];
  return JSON.stringify([exit, signal, timed_out, stdout_sha256, stderr_sha256, changes]);
}
