/** Applies the changes that can be applied, for a call with `skip_refused`; the others stay held. */
import type { ApplyEnding, HeldChange, PathReason } from "../../world/backend.ts";

/** Each round may find refusals of another kind: of the files themselves, then of their places in the project. */
const MOST_ROUNDS = 5;

type Applied = {
  readonly ending: ApplyEnding;
  /** The changes left out, with the reason of each. */
  readonly skipped: readonly PathReason[];
};

/**
 * Calls `apply` with the changes that are not refused, until it refuses none of them. A folder is left out too when something
 * below it is: naming it would name all that it has.
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

/** The paths of the changes that are neither at, below nor above a skipped one. */
function pathsWithout(changes: readonly HeldChange[], skipped: readonly PathReason[]): readonly string[] {
  const at = new Set(skipped.map(({ path }) => path));
  const above = new Set([...at].flatMap(foldersOf));
  return changes
    .map(({ path }) => path)
    .filter((path) => !at.has(path) && !above.has(path) && !foldersOf(path).some((folder) => at.has(folder)));
}

function foldersOf(path: string): string[] {
  const folders: string[] = [];
  for (let slash = path.indexOf("/"); slash >= 0; slash = path.indexOf("/", slash + 1))
    folders.push(path.slice(0, slash));
  return folders;
}
