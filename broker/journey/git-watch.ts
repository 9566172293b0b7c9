/** Guards git's own files against a plain command: judges them during the run, and again after the command has ended. */
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
  /** Callbacks for the run. */
  readonly listeners: Pick<RunRequest, "replacements" | "removals" | "onBrought" | "onSealed">;
  /** Takes out files brought by the command that git would execute, and returns the remaining changes. */
  readonly kept: (changes: FsDiff) => Promise<FsDiff>;
};

/** Starts watching, just before the command begins. `tell` receives each removal. */
export function watchGit(broker: Broker, job: Job, world: World, tell: BroughtBy["tell"]): GitWatch {
  const { judgedSettings, madeRepositories } = broker;
  const { project } = job.place;
  const judged = broughtBy(broker, job, world, tell);
  // Two cases are not judged: held changes, since a person reviews them before any git reads them; and a policy that leaves
  // `.git/config` writable, since such a policy also covers the repositories below.
  const judges = !isIsolated(job) && world.spec.files.seal.some((path) => path.endsWith(".git/config"));
  const since = Date.now();
  // A repository made by an earlier command is not the person's: a later command may remove and recreate it.
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
