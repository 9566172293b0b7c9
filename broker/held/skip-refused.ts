/** Applies the changes that can be applied, for a call with `skip_refused`; the others stay held. */
import type { ApplyEnding, HeldChange, PathReason } from "../../world/backend.ts";
import { parentOf } from "./change-path.ts";

/** Each round may find refusals of another kind: of the files themselves, then of their places in the project. */
const MOST_ROUNDS = 5;

type Applied = {
  readonly ending: ApplyEnding;
  /** The changes left out, with the reason of each. */
  readonly skipped: readonly PathReason[];
};

/**
 * Calls `apply` with the changes that are not refused, until it refuses none of them. A folder is left out too when something
 * below it is: a named folder stands for everything below it.
 * @param denied refused by the policy
 * @param apply applies the changes at these byte paths, and everything below them
 */
export async function applyUnrefused(
  changes: readonly HeldChange[],
  denied: readonly PathReason[],
  apply: (paths: readonly string[]) => Promise<ApplyEnding>,
): Promise<Applied> {
  const skipped = [...denied];
  for (let round = 1; ; round++) {
    const paths = pathsWithout(changes, skipped);
    if (paths.length === 0) return { ending: { kind: "refused", refusals: skipped }, skipped };
    const ending = await apply(paths);
    const reasons = reasonsOf(ending);
    if (reasons === undefined || round === MOST_ROUNDS) return { ending, skipped };
    skipped.push(...reasons);
  }
}

function reasonsOf(ending: ApplyEnding): readonly PathReason[] | undefined {
  if (ending.kind === "refused") return ending.refusals;
  return ending.kind === "conflict" ? ending.conflicts : undefined;
}

/** The paths of the changes that are neither at, below nor above a skipped one. Folders may be nested thousands deep. */
function pathsWithout(changes: readonly HeldChange[], skipped: readonly PathReason[]): readonly string[] {
  const at = new Set(skipped.map(({ path }) => path));
  const above = new Set<string>();
  for (const path of at)
    for (let folder = parentOf(path); folder !== "" && !above.has(folder); folder = parentOf(folder))
      above.add(folder);
  const below = new Map<string, boolean>([["", false]]);
  const isBelow = (folder: string): boolean => {
    const climbed: string[] = [];
    let found: boolean | undefined;
    for (let one = folder; found === undefined; one = parentOf(one)) {
      found = at.has(one) ? true : below.get(one);
      if (found === undefined) climbed.push(one);
    }
    for (const one of climbed) below.set(one, found);
    return found;
  };
  return changes
    .map(({ path }) => path)
    .filter((path) => !at.has(path) && !above.has(path) && !isBelow(parentOf(path)));
}
