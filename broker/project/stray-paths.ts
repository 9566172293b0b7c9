import { lstatSync, realpathSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Whether only the world can resolve a path's target: its folder is reached through a link or hidden, or the path is itself a
 * link. Called only for paths that a policy would refuse.
 *
 * @param mayMake whether the command itself may create missing folders: then the nearest existing folder counts. Otherwise a
 * missing folder is left to the world too.
 */
export function leadsElsewhere(path: string, mayMake: boolean): boolean {
  try {
    const folder = mayMake ? standingFolder(dirname(path)) : dirname(path);
    return realpathSync.native(folder) !== folder || isLink(path);
  } catch {
    // Missing or hidden, ignoring: the broker cannot resolve the path.
    return true;
  }
}

/** Returns the path, or its nearest existing parent. Throws for an unreadable folder. */
function standingFolder(path: string): string {
  let folder = path;
  // A dangling link exists.
  while (lstatSync(folder, { throwIfNoEntry: false }) === undefined) folder = dirname(folder);
  return folder;
}

/** Includes dangling links: a write through the link creates the target. */
function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}
