import { realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/** Resolves the existing part of `path`, which is absolute, and appends the missing rest as spelled. */
export function realPlace(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    // Missing, a loop, or unreadable, ignoring: the parent folder may still lead through a link.
    const parent = dirname(path);
    return parent === path ? path : join(realPlace(parent), basename(path));
  }
}
