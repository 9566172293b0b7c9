/** Compares the changes of two runs. Unmeasured changes never count as equal. Pure. */
import type { FsDiff, ReplayChange, ReplayChangesApart } from "../../schemas/generated/types.ts";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { StateHash } from "../project-files/state-hash.ts";
import { walk } from "../project-files/walk.ts";

export type ChangesCompared = {
  readonly matches: boolean | null;
  readonly apart: ReplayChangesApart | null;
  readonly notes: readonly string[];
};

const KINDS = [
  ["write", "writes"],
  ["mod", "mods"],
  ["delete", "deletes"],
  ["dir", "dirs"],
] as const;

/** `wroteItself`: the recorded command wrote directly to the project, so the previous contents of its files are unknown. */
export function compareChanges(
  recorded: FsDiff | null,
  now: FsDiff | null,
  wroteItself = false,
): ChangesCompared {
  const gap = gapOf("the recorded command", recorded) ?? gapOf("the replay", now);
  if (gap !== undefined || recorded === null || now === null)
    return { matches: null, apart: null, notes: gap === undefined ? [] : [gap] };
  const apart = changesApart(recorded, now);
  if (wroteItself && maybeRewritten(apart)) return { matches: null, apart, notes: [REWRITTEN] };
  if (apart.only_recorded.length + apart.only_now.length > 0) return { matches: false, apart, notes: [] };
  if (recorded.tree_hash !== now.tree_hash && bothHashed(recorded, now)) {
    return {
      matches: false,
      apart,
      notes: ["The same paths changed, but their contents, modes or kinds differ"],
    };
  }
  if (bothHashed(recorded, now) || isEmpty(now)) return { matches: true, apart, notes: [] };
  return {
    matches: null,
    apart,
    notes: ["The same paths changed; their contents were not hashed, so they cannot be compared"],
  };
}

/** Returns why one side's changes are incomplete. A truncated list is usable only with its hash. */
function gapOf(whose: string, diff: FsDiff | null): string | undefined {
  if (diff === null) return `The changes of ${whose} were not listed, so they cannot be compared`;
  if (!diff.truncated || diff.tree_hash !== null) return undefined;
  return `The list of changes of ${whose} is incomplete, so they cannot be compared (${diff.summary ?? "the list is cut"})`;
}

const REWRITTEN =
  "Paths that only the record lists were opened for writing, perhaps to write the same bytes again: " +
  "direct writes to the project are listed even then, writes to an overlay are not";

/** Whether only modifications are missing: a rewrite with equal bytes is recorded by a direct command, and not by an overlay. */
function maybeRewritten({ only_recorded: recorded, only_now: now }: ReplayChangesApart): boolean {
  return now.length === 0 && recorded.length > 0 && recorded.every(({ kind }) => kind === "mod");
}

function bothHashed(one: FsDiff, other: FsDiff): boolean {
  return one.tree_hash !== null && other.tree_hash !== null;
}

function isEmpty(diff: FsDiff): boolean {
  return !diff.truncated && KINDS.every(([, list]) => diff[list].length === 0);
}

function changesApart(recorded: FsDiff, now: FsDiff): ReplayChangesApart {
  return { only_recorded: [...only(recorded, now)], only_now: [...only(now, recorded)] };
}

function only(one: FsDiff, other: FsDiff): readonly ReplayChange[] {
  return KINDS.flatMap(([kind, list]) => {
    const known = new Set(other[list]);
    return one[list].filter((path) => !known.has(path)).map((path) => ({ kind, path }));
  });
}

/**
 * Finds project files changed since a moment, by their ctime, which no program can set back. Runs alongside the replayed command,
 * so it adds almost no time of its own; unvisited files are reported.
 */

/** Pause between turns while the world starts and runs, in milliseconds. */
const PAUSE_MS = 2;

const MAX_ENTRIES = 200_000;

export type ChangedFiles = {
  /** Relative to the project; a folder ends in `/`: an entry of the folder was added, removed or renamed. */
  readonly paths: readonly string[];
  readonly looked: number;
  /** Number of unreadable entries. */
  readonly unread: number;
  /** Whether all other entries were visited. */
  readonly complete: boolean;
  /** The `dirty_hash` that a command starting now would record. */
  readonly state: string | null;
};

/** A deadline that can be set later. */
export class Patience {
  #deadline = Number.POSITIVE_INFINITY;

  /** Sets the deadline this many milliseconds from now. */
  for(milliseconds: number): void {
    this.#deadline = performance.now() + milliseconds;
  }

  get isBounded(): boolean {
    return this.#deadline !== Number.POSITIVE_INFINITY;
  }

  get isOver(): boolean {
    return performance.now() > this.#deadline;
  }
}

type Asked = {
  readonly project: string;
  /** The time in milliseconds from which a change of the path counts. */
  readonly since: (path: string) => number;
  /** Whether the caller may learn of a path. */
  readonly mayTell: (path: string) => boolean;
};

export async function changedFiles(
  { project, since, mayTell }: Asked,
  patience: Patience,
): Promise<ChangedFiles> {
  const paths: string[] = [];
  const state = new StateHash();
  let looked = 0;
  const { stopped, unread } = await walk(
    project,
    (seen) => {
      looked += 1;
      state.add(seen);
      if (seen.stat.ctimeMs <= since(seen.path) || !mayTell(seen.path)) return;
      paths.push(seen.stat.isDirectory() ? `${seen.path === "" ? "." : seen.path}/` : seen.path);
    },
    async () => {
      await (patience.isBounded ? nextTurn() : sleep(PAUSE_MS));
      return !patience.isOver && looked < MAX_ENTRIES;
    },
  );
  const whole = !stopped && unread === 0;
  return { paths: paths.sort(), looked, unread, complete: !stopped, state: whole ? state.value() : null };
}
