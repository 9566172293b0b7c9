/** What a plain command does to git's own files: judged while it runs, and once more when it has ended. */
import { join } from "node:path";
import type { FsDiff } from "../../schemas/generated/types.ts";
import type { World } from "../../world/backend.ts";
import type { Broker } from "../broker.ts";
import type { BroughtBy } from "../git/brought.ts";
import { whenBrought, whenSealed, withoutBroughtCodeBesideOthers } from "../git/kept.ts";
import { isIsolated, type Job } from "../model/job.ts";
import type { RunRequest } from "../worlds/run.ts";
import { covers } from "../worlds/world-spec.ts";

export type GitWatch = {
  /** What a run asks and tells it. */
  readonly listeners: Pick<RunRequest, "replacements" | "removals" | "onBrought" | "onSealed">;
  /** The changes without what the command brought that git would run: that is taken out. */
  readonly kept: (changes: FsDiff) => Promise<FsDiff>;
};

/** Begins to watch, just before the command begins. `tell`: of what is taken out. */
export function watchGit(broker: Broker, job: Job, world: World, tell: BroughtBy["tell"]): GitWatch {
  const { judgedSettings, madeRepositories } = broker;
  const { project } = job.place;
  const judged = broughtBy(broker, job, world, tell);
  // Held changes are somebody's to look at, and no git reads them before. Who lets commands write git's own settings says the same
  // of those below.
  const judges = !isIsolated(job) && world.spec.files.seal.some((path) => path.endsWith(".git/config"));
  const since = Date.now();
  // A repository that a command made may be taken away and made anew by this one.
  const isPersons = isIsolated(job) || !madeRepositories.isMade(join(project, ".git"));
  const stood = isIsolated(job) || judgedSettings.stoodAtFirst(world, project);
  return {
    listeners: {
      replacements: judgedSettings,
      removals: madeRepositories,
      onBrought: judges ? whenBrought(world, judged) : undefined,
      onSealed: judges ? whenSealed(judged) : undefined,
    },
    kept: async (changes) => {
      if (!isIsolated(job)) madeRepositories.made(changes, project, since);
      if (!judges) return changes;
      const stoodAtFirst = isPersons && (await stood);
      return await withoutBroughtCodeBesideOthers(world, changes, { ...judged, since, stoodAtFirst });
    },
  };
}

function broughtBy(broker: Broker, job: Job, world: World, tell: BroughtBy["tell"]): BroughtBy {
  const { gitFolder, files } = world.spec;
  const mayWrite = (path: string): boolean => covers(files.write, path);
  return {
    project: job.place.project,
    gitFolder: gitFolder !== undefined && mayWrite(gitFolder) ? gitFolder : undefined,
    mayWrite,
    isDenied: (path) => files.denyWrite.includes(path),
    uid: broker.projectRules().uid,
    judgedSettings: broker.judgedSettings,
    turns: broker.settleTurns,
    made: broker.madeRepositories,
    sealed: files.seal,
    isSealed: (path) => world.isSealed(path),
    takeOut: (path) => world.takeOut(path),
    tell,
  };
}
