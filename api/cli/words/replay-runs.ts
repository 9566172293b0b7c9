import type { ReplayReply } from "../../../schemas/generated/types.ts";

/** Whether several runs of a command had equal results, without regard to the recorded run. An unhashed tree is compared by names. */
export function allAlike(replies: readonly ReplayReply[]): boolean {
  return new Set(replies.map(didOf)).size <= 1;
}

/** Groups runs with equal results; each group lists run numbers, from 1. */
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
