/** Shared by every listing of changes: its bounds, and the sentences about omitted changes. */
import type { FsDiff } from "../../schemas/generated/types.ts";

/** Bounds of a listing (source document: 1,000 files and 100 folders, then a summary and a tree hash). */
export const MAX_FILES = 1000;
export const MAX_FOLDERS = 100;

/** Maximum of hashed bytes: takes about one second of CPU time, after the command has ended. */
export const MAX_HASHED = 512 * 1024 * 1024;

/** The listing of a command known to have changed nothing. Unknown changes are reported in `summary` instead. */
export const NO_CHANGES: FsDiff = {
  writes: [],
  mods: [],
  deletes: [],
  dirs: [],
  autorun: [],
  world_only: [],
  outside: [],
  held: false,
  truncated: false,
  summary: null,
  tree_hash: null,
};

/** Returns a sentence with the totals if not all changes are listed. */
export function beyondBounds(files: number, folders: number): readonly string[] {
  return files > MAX_FILES || folders > MAX_FOLDERS
    ? [
        `${files} files and ${folders} folders changed; the first ${MAX_FILES} files and ${MAX_FOLDERS} folders are listed`,
      ]
    : [];
}
