/** What every listing of changes has in common, however it was made: its bounds, and its words for what they leave out. */
import type { FsDiff } from "../../schemas/generated/types.ts";

/** Bounds of a listed diff (source document: 1,000 files and 100 folders, then a summary and a tree hash). */
export const MAX_FILES = 1000;
export const MAX_FOLDERS = 100;

/** Bytes that are hashed at most: a second or so of one processor, after the command has ended. */
export const MAX_HASHED = 512 * 1024 * 1024;

/** Of something that changed nothing, for certain. What is not known has a `summary` that says so. */
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

/** A sentence for so many changes when not all of them are listed. */
export function beyondBounds(files: number, folders: number): readonly string[] {
  return files > MAX_FILES || folders > MAX_FOLDERS
    ? [
        `${files} files and ${folders} folders changed; the first ${MAX_FILES} files and ${MAX_FOLDERS} folders are listed`,
      ]
    : [];
}
