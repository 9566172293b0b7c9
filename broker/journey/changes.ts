import type { FsDiff } from "../../schemas/generated/types.ts";
import { NO_CHANGES, type Strayed, type World } from "../../world/backend.ts";
import { holdsChanges, isIsolated, type Job } from "../model/job.ts";
import type { Ran } from "../worlds/run.ts";

/** The listing timed out: the command may have changed any file, so the whole overlay is kept. */
const UNLISTED: FsDiff = {
  ...NO_CHANGES,
  held: true,
  truncated: true,
  summary: "not measured: listing the changes took too long and was stopped",
};

/** Time-out in milliseconds; a diff of the largest listing takes one or two seconds. */
const DIFF_PATIENCE_MS = 30_000;

/** Lists a command's changes, as far as they could be observed. */
export async function changesOf(job: Job, world: World, ran: Ran): Promise<FsDiff> {
  if (ran.ending.kind === "not_started") return NO_CHANGES;
  return withStrays(await listed(job, world, ran), await world.strays());
}

/** Uses `setTimeout`: `AbortSignal.timeout` leaves a timer and a weak reference per command to the garbage collector. */
async function listed(job: Job, world: World, ran: Ran): Promise<FsDiff> {
  const patience = new AbortController();
  const late = setTimeout(() => patience.abort(), DIFF_PATIENCE_MS);
  try {
    if (!isIsolated(job)) return await ran.run.changes(patience.signal);
    const changes = await world.fsDiff(patience.signal).catch((error: unknown) => {
      if (!patience.signal.aborted) throw error;
      return UNLISTED;
    });
    return holdsChanges(job) ? changes : { ...changes, held: false };
  } finally {
    clearTimeout(late);
  }
}

function withStrays(changes: FsDiff, { paths, count }: Strayed): FsDiff {
  const all = { ...changes, world_only: [...paths] };
  if (count === paths.length) return all;
  const words = `${count} writes stayed in the world; the first ${paths.length} are listed`;
  const summary = changes.summary === null ? words : `${changes.summary}; ${words}`;
  return { ...all, truncated: true, summary };
}
