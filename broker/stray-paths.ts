import { lstatSync, realpathSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Whether it is the world that must say where writing to a path leads: its folder is reached through a link, is missing or
 * cannot be seen, or the path is a link itself. Asked only for what a policy would refuse.
 */
export function leadsElsewhere(path: string): boolean {
  try {
    const folder = dirname(path);
    return realpathSync.native(folder) !== folder || isLink(path);
  } catch {
    // Missing or hidden, ignoring which: nothing can be said about it.
    return true;
  }
}

/** Also one that leads nowhere yet: what is written to it makes the file there. */
function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}
