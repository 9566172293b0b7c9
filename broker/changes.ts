import type { FsDiff, Span } from "../schemas/generated/types.ts";
import type { World } from "../world/backend.ts";
import { isIsolated, type Job } from "./job.ts";
import type { Ran } from "./run.ts";

/** Writes that go straight to the project are not listed in this version: the diff says so instead of being empty. */
const NOT_LISTED: FsDiff = {
  writes: [],
  mods: [],
  deletes: [],
  dirs: [],
  autorun: [],
  world_only: [],
  held: false,
  truncated: true,
  summary: "not measured: this version lists the changes of isolated commands only",
  tree_hash: null,
};

/** A diff of the largest listing takes a second or two. */
const DIFF_PATIENCE_MS = 30_000;

/** What a command changed, as far as it was seen. */
export async function changesOf(job: Job, world: World, ran: Ran): Promise<FsDiff> {
  if (ran.ending.kind === "not_started") return NOT_LISTED;
  if (!isIsolated(job)) return { ...NOT_LISTED, world_only: [...(await world.strays())] };
  return await world.fsDiff(AbortSignal.timeout(DIFF_PATIENCE_MS));
}

/**
 * Whether a span that an earlier broker wrote may hold changes. A command that was lost with its broker has no listing,
 * so nothing of it can be shown or applied; one whose listing failed may hold some, and so may one that this trace does
 * not know, because somebody began a new trace.
 */
export function mayHold(span: Span | undefined): boolean {
  if (span === undefined || span.fs_diff?.held === true) return true;
  return span.event_type === "command_complete" && span.outcome === "failed";
}
