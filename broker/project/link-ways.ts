/** Resolves a symbolic link step by step: a command that can replace any step redirects the whole link. */
import { type Dir, type Dirent, lstatSync, opendirSync, readlinkSync } from "node:fs";
import { join } from "node:path";

/** The kernel's bound (`MAXSYMLINKS`): a path with more links cannot be resolved. */
const MAX_LINKS = 40;

/** Returns each link on an absolute path, by the real path of its folder, and finally the resolved path. */
export function wayTo(path: string): readonly string[] {
  const links: string[] = [];
  let at = "/";
  const rest = namesOf(path);
  for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
    const next = join(at, name);
    const target = name === ".." ? undefined : linkAt(next);
    if (target === undefined) at = next;
    else {
      if (links.length === MAX_LINKS) return links;
      links.push(next);
      rest.unshift(...namesOf(target));
      if (target.startsWith("/")) at = "/";
    }
  }
  return [...links, at];
}

function namesOf(path: string): string[] {
  return path.split("/").filter((name) => name !== "" && name !== ".");
}

function linkAt(path: string): string | undefined {
  try {
    const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
    return isLink ? readlinkSync(path) : undefined;
  } catch {
    // Unreadable for the broker, or removed: other programs of the same user cannot follow the link either.
    return undefined;
  }
}

/** Returns the sorted names of links among a folder's first `most` entries; empty for a missing folder. */
export function linksIn(folder: string, most: number): readonly string[] {
  return entriesIn(folder, most)
    .filter((entry) => entry.isSymbolicLink())
    .map(({ name }) => name)
    .sort();
}

/** Returns a folder's first `most` entries; empty for a missing folder. */
export function entriesIn(folder: string, most: number): readonly Dirent[] {
  let entries: Dir;
  try {
    entries = opendirSync(folder);
  } catch {
    // Missing, not a folder, or unreadable for every program of the same user.
    return [];
  }
  const found: Dirent[] = [];
  for (let left = most; left > 0; left -= 1) {
    const entry = entries.readSync();
    if (entry === null) break;
    found.push(entry);
  }
  entries.closeSync();
  return found;
}
