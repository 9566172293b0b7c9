import { lstatSync, realpathSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Whether it is the world that must say where writing to a path leads: its folder is reached through a link or cannot be seen, or the
 * path is a link itself. Asked only for what a policy would refuse.
 *
 * @param mayMake the folders that are missing may be made by the command itself: the nearest one that is there counts then. Else
 *   a missing folder is the world's affair too.
 */
export function leadsElsewhere(path: string, mayMake: boolean): boolean {
  try {
    const folder = mayMake ? standingFolder(dirname(path)) : dirname(path);
    return realpathSync.native(folder) !== folder || isLink(path);
  } catch {
    // Missing or hidden, ignoring which: nothing can be said about it.
    return true;
  }
}

/** The path itself, or the nearest folder above it that is there. Throws where something cannot be looked at. */
function standingFolder(path: string): string {
  let folder = path;
  // A link that leads nowhere is there.
  while (lstatSync(folder, { throwIfNoEntry: false }) === undefined) folder = dirname(folder);
  return folder;
}

/** Also one that leads nowhere yet: what is written to it makes the file there. */
function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}
