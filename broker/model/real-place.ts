import { realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/** Where a path leads: the real path of as much of it as exists, and the rest as it is spelled. `path` is absolute. */
export function realPlace(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    // Missing, a loop, or not ours to enter, ignoring which: the folder above may still be reached through a link.
    const parent = dirname(path);
    return parent === path ? path : join(realPlace(parent), basename(path));
  }
}
