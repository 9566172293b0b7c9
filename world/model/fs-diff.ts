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

/** Numbers of changes by kind, those beyond the bounds of a listing too. */
export type ChangeCounts = {
  readonly write: number;
  readonly mod: number;
  readonly delete: number;
  readonly dir: number;
};

/** Returns a sentence with the totals if not all changes are listed. */
export function beyondBounds(counts: ChangeCounts): readonly string[] {
  const files = counts.write + counts.mod + counts.delete;
  if (files <= MAX_FILES && counts.dir <= MAX_FOLDERS) return [];
  return [
    `${files} files and ${counts.dir} folders changed (${fileWords(counts)}); the first ${MAX_FILES} files and ${MAX_FOLDERS} folders are listed`,
  ];
}

/** The beginning of the sentence of {@link beyondBounds}. */
const TOTALS = /^(\d+) files and (\d+) folders changed \(([^)]+)\)/;

/** Counts a command's changes: `all` with the folders, and the files in words. Lists that are cut have their totals in the summary. */
export function countChanges(changes: FsDiff): { readonly all: number; readonly words: string } {
  const { writes, mods, deletes, dirs, summary } = changes;
  const [, files, folders, words] = TOTALS.exec(summary ?? "") ?? [];
  if (words !== undefined) return { all: Number(files) + Number(folders), words };
  const counts = { write: writes.length, mod: mods.length, delete: deletes.length, dir: dirs.length };
  const all = counts.write + counts.mod + counts.delete + counts.dir;
  return { all, words: all === 0 && summary !== null ? summary : fileWords(counts) };
}

function fileWords({ write, mod, delete: deleted }: ChangeCounts): string {
  return `${write} written, ${mod} modified, ${deleted} deleted`;
}
