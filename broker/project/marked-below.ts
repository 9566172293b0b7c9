/** Marked projects (`.git`, `.substrate-profile`) below a folder. */
import { readdirSync } from "node:fs";
import { join } from "node:path";

export type MarkedBelow = {
  /** Real paths, shallowest first. */
  readonly marked: readonly string[];
  /** False when the bound on visited folders was reached. */
  readonly complete: boolean;
};

/** Names that mark a folder as a project. */
export const MARKS = [".git", ".substrate-profile"] as const;

/** Bound on visited folders, at 0.01 to 0.03 ms each. A person's documents have some hundred. */
export const MOST_FOLDERS = 4000;

/** Skipped folders: thousands of packages, but no project of a person. */
const NOT_ENTERED = [".git", "node_modules"];

/**
 * Searches level by level without following links, in at most {@link MOST_FOLDERS} folders. Stops at the first mark accepted by
 * `until`.
 */
export function markedBelow(folder: string, until: (marked: string) => boolean = () => false): MarkedBelow {
  const marked: string[] = [];
  const found = [folder];
  for (let at = 0; at < found.length; at += 1) {
    if (at >= MOST_FOLDERS) return { marked, complete: false };
    const here = found[at] ?? folder;
    const entries = entriesOf(here);
    if (here !== folder && entries.some(({ name }) => MARKS.some((mark) => mark === name))) {
      marked.push(here);
      if (until(here)) return { marked, complete: true };
    }
    for (const entry of entries) {
      if (entry.isDirectory() && !NOT_ENTERED.includes(entry.name)) found.push(join(here, entry.name));
    }
  }
  return { marked, complete: true };
}

function entriesOf(folder: string): ReturnType<typeof readEntries> {
  try {
    return readEntries(folder);
  } catch {
    // Unreadable or removed: no command of this user could write there either.
    return [];
  }
}

function readEntries(folder: string) {
  return readdirSync(folder, { withFileTypes: true });
}
