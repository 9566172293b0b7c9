/** Finds deletions that belong to a move: applied without the moved file, they would take it from the project. */
import { constants } from "node:fs";
import { posix } from "node:path";
import type { HeldChange, HeldStore, OpenSides, PathReason } from "../../world/backend.ts";
import { changePath } from "./change-path.ts";

/** Larger files are the same when their sizes are. */
const MAX_COMPARED = 64 * 1024 * 1024;
/** Bound on the deleted files that are compared. */
const MAX_FILES = 10_000;

/** A new file that stays held: its content may come from a deleted one. */
type Arrival = { readonly path: string; readonly kind: HeldChange["kind"]; readonly size: number };

/**
 * Returns the deletions among `taken` that remove a file whose content one of `held` has, each with the reason to hold it too.
 * Empty files are compared by their last name. A file that was changed after its move is not found, nor one beyond the
 * first 10,000 deleted.
 */
export async function halvesOfMoves(
  open: () => ReturnType<HeldStore["sides"]>,
  taken: readonly HeldChange[],
  held: readonly HeldChange[],
): Promise<readonly PathReason[]> {
  const deletions = taken.filter(({ kind }) => kind === "delete");
  const arrivals = held.filter(isArrival);
  if (deletions.length === 0 || arrivals.length === 0) return [];
  const sides = await open();
  try {
    return await amongDeleted(sides, deletions, arrivals);
  } finally {
    await sides.close();
  }
}

async function amongDeleted(
  sides: OpenSides,
  deletions: readonly HeldChange[],
  arrivals: readonly Arrival[],
): Promise<readonly PathReason[]> {
  const halves: PathReason[] = [];
  let rest = MAX_FILES;
  for (const { path } of deletions) {
    const { kind } = await sides.before(path);
    const files = kind === "folder" ? (await sides.filesBelow(path, rest)).paths : [path];
    const arrival = await firstArrival(sides, files, arrivals);
    if (arrival !== undefined)
      halves.push({
        path,
        reason: `The command moved it to '${changePath(arrival.path)}', which stays held`,
      });
    rest -= files.length;
    if (rest <= 0) break;
  }
  return halves;
}

function isArrival({ kind, mode }: HeldChange): boolean {
  const type = mode & constants.S_IFMT;
  const isNew = kind === "write" || kind === "mod" || kind === "link";
  return isNew && (type === constants.S_IFREG || type === constants.S_IFLNK);
}

async function firstArrival(
  sides: OpenSides,
  paths: readonly string[],
  arrivals: readonly Arrival[],
): Promise<Arrival | undefined> {
  for (const path of paths) {
    const arrival = await arrivalOf(sides, path, arrivals);
    if (arrival !== undefined) return arrival;
  }
  return undefined;
}

/** Returns the held file with the content that the project has at `path`. */
async function arrivalOf(
  sides: OpenSides,
  path: string,
  arrivals: readonly Arrival[],
): Promise<Arrival | undefined> {
  const before = await sides.before(path);
  for (const arrival of arrivals) {
    if (before.kind === "link") {
      const after = arrival.kind === "link" ? await sides.after(arrival) : undefined;
      if (after?.kind === "link" && Buffer.from(after.target).equals(before.target)) return arrival;
    }
    if (before.kind !== "file" || arrival.kind === "link" || arrival.size !== before.size) continue;
    if (await isSame(sides, path, arrival)) return arrival;
  }
  return undefined;
}

async function isSame(sides: OpenSides, path: string, { path: to, size }: Arrival): Promise<boolean> {
  if (size === 0) return posix.basename(path) === posix.basename(to);
  if (size > MAX_COMPARED) return true;
  const before = await sides.content("before", path, MAX_COMPARED);
  const after = await sides.content("after", to, MAX_COMPARED);
  return before !== null && after !== null && Buffer.from(before).equals(after);
}
