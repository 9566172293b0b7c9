/** Whether two runs changed the same. What was not measured is never called equal. Pure. */
import type { FsDiff, ReplayChange, ReplayChangesApart } from "../../schemas/generated/types.ts";

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
