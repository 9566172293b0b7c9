/** Applies the changes that can be applied, for a call with `skip_refused`; the others stay held. */
import type { ApplyEnding, HeldChange, PathReason } from "../../world/backend.ts";
import { parentOf } from "./change-path.ts";

/** Files that take each other's names (`log.1` to `log.2`, `log` to `log.1`) are found one by one. */
const MOST_STEPS = 100;

/** Each round may find refusals of another kind: of the files themselves, then of their places in the project. */
const MOST_ROUNDS = 5;

type Applied = {
  readonly ending: ApplyEnding;
  /** The changes left out, with the reason of each. */
  readonly skipped: readonly PathReason[];
};

export type Applying = {
  /** Applies the changes at these byte paths, and everything below them. */
  readonly apply: (paths: readonly string[]) => Promise<ApplyEnding>;
  /** Returns the changes to leave out when `taken` is applied and `held` is not (`HalfMoves`). */
  readonly halves: (
    taken: readonly HeldChange[],
    held: readonly HeldChange[],
  ) => Promise<readonly PathReason[]>;
};

/**
 * Applies the changes that are not refused, until none of them is. A folder is left out too when something below it is: a named
 * folder stands for everything below it.
 * @param denied refused by the policy
 */
export async function applyUnrefused(
  changes: readonly HeldChange[],
  denied: readonly PathReason[],
  { apply, halves }: Applying,
): Promise<Applied> {
  const skipped = [...denied];
  for (let round = 1; ; round++) {
    const paths = await wholePaths(changes, [], skipped, halves);
    if (paths.length === 0) return { ending: { kind: "refused", refusals: skipped }, skipped };
    const ending = await apply(paths);
    const reasons = reasonsOf(ending);
    if (reasons === undefined || round === MOST_ROUNDS) return { ending, skipped };
    skipped.push(...reasons);
  }
}

/**
 * Applies `changes`, of which `paths` are the names, without those that are half of a move whose other half is in `all`.
 */
export async function applyWhole(
  changes: readonly HeldChange[],
  all: readonly HeldChange[],
  { apply, halves }: Applying,
  paths: readonly string[],
): Promise<ApplyEnding> {
  const among = new Set(changes);
  const outside = all.filter((change) => !among.has(change));
  const kept: PathReason[] = [];
  const whole = await wholePaths(changes, outside, kept, halves);
  if (whole.length === 0) return { kind: "refused", refusals: kept };
  return await apply(kept.length === 0 ? paths : whole);
}

/**
 * Returns the paths of the changes to apply: none is half of a move of which another stays held. Adds to `skipped`; after
 * {@link MOST_STEPS} steps nothing is applied.
 */
async function wholePaths(
  changes: readonly HeldChange[],
  outside: readonly HeldChange[],
  skipped: PathReason[],
  halves: Applying["halves"],
): Promise<readonly string[]> {
  for (let step = 0; step < MOST_STEPS; step += 1) {
    const { taken, held } = partsOf(changes, skipped);
    const found = await halves(taken, [...held, ...outside]);
    if (found.length === 0) return taken.map(({ path }) => path);
    skipped.push(...found);
  }
  return [];
}

function reasonsOf(ending: ApplyEnding): readonly PathReason[] | undefined {
  if (ending.kind === "refused") return ending.refusals;
  return ending.kind === "conflict" ? ending.conflicts : undefined;
}

type Parts = { readonly taken: readonly HeldChange[]; readonly held: readonly HeldChange[] };

/** `taken`: the changes that are neither at, below nor above a skipped one. Folders may be nested thousands deep. */
function partsOf(changes: readonly HeldChange[], skipped: readonly PathReason[]): Parts {
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
  const isTaken = ({ path }: HeldChange): boolean =>
    !at.has(path) && !above.has(path) && !isBelow(parentOf(path));
  const taken = changes.filter(isTaken);
  const among = new Set(taken);
  return { taken, held: changes.filter((change) => !among.has(change)) };
}
