/** Whether two runs changed the same. What was not measured is never called equal. Pure. */
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

/** `wroteItself`: the recorded command wrote to the project and not to an overlay, so nobody knows what its files held before. */
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
      notes: ["The same paths changed, and their contents, modes or kinds are not the same"],
    };
  }
  if (bothHashed(recorded, now) || isEmpty(now)) return { matches: true, apart, notes: [] };
  return {
    matches: null,
    apart,
    notes: [
      "The same paths changed; whether to the same contents is not known, because they were not hashed",
    ],
  };
}

/** Why the changes of one side are not known as a whole. A list that is cut is good with its hash alone. */
function gapOf(whose: string, diff: FsDiff | null): string | undefined {
  if (diff === null) return `The changes of ${whose} were not listed, so they are not compared`;
  if (!diff.truncated || diff.tree_hash !== null) return undefined;
  return `The changes of ${whose} are not known as a whole, so they are not compared (${diff.summary ?? "the list is cut"})`;
}

const REWRITTEN =
  "The paths that only the record has were opened for writing, and may have got the bytes that they had: " +
  "what writes to the project itself is listed all the same, and what writes to an overlay is not";

/** Nothing else is known of a file that was there before and is there now. */
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
 * Files of a project that were changed since a moment, told by their ctime, which nobody can set back. Looked at while the
 * replayed command runs, so that it takes next to no time of its own; what it did not come to is said.
 */

/** Between two turns while the world is made and runs, in milliseconds. */
const PAUSE_MS = 2;

const MAX_ENTRIES = 200_000;

export type ChangedFiles = {
  /** Relative to the project, a folder with a `/` behind it: something in it came, went or was renamed. */
  readonly paths: readonly string[];
  readonly looked: number;
  /** What is there and could not be looked at. */
  readonly unread: number;
  /** Whether all else was looked at. */
  readonly complete: boolean;
  /** What the span of a command that began now would have as `dirty_hash`. */
  readonly state: string | null;
};

/** How much longer somebody waits. */
export class Patience {
  #deadline = Number.POSITIVE_INFINITY;

  /** From now on, so many milliseconds and no more. */
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
  /** From which moment on (ms) a change of that path counts. */
  readonly since: (path: string) => number;
  /** Whether whoever asks may know of a path. */
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
