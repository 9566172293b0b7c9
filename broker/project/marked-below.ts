/** Marked projects (`.git`, `.substrate-profile`) below a folder. */
import { readdirSync } from "node:fs";
import { join } from "node:path";

export type MarkedBelow = {
  /** Real paths, the shallowest first. */
  readonly marked: readonly string[];
  /** False: there are more folders than were looked into. */
  readonly complete: boolean;
};

/** What says that a folder is a project. */
export const MARKS = [".git", ".substrate-profile"] as const;

/** How many folders are looked into, at 0.01 to 0.03 ms each. A person's documents have some hundred. */
export const MOST_FOLDERS = 4000;

/** Thousands of packages, none of them a person's project. */
const NOT_ENTERED = [".git", "node_modules"];

/** Looks level by level, through no link, at most into {@link MOST_FOLDERS} folders. Ends at the first mark that `until` wants. */
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
    // Not ours to read, or gone since: no command of this user could write there either.
    return [];
  }
}

function readEntries(folder: string) {
  return readdirSync(folder, { withFileTypes: true });
}
