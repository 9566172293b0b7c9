import type { FsDiff } from "../schemas/generated/types.ts";
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
