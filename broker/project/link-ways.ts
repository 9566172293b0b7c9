/** The steps of a symbolic link: a command that can replace one of them leads the whole link to another file. */
import { type Dir, type Dirent, lstatSync, opendirSync, readlinkSync } from "node:fs";
import { join } from "node:path";

/** As the kernel (`MAXSYMLINKS`): a path with more leads nowhere. */
const MAX_LINKS = 40;

/** Each link on the way to an absolute path, by the real path of the folder it stands in, and last where the way ends. */
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
    // Closed to the broker, or gone since: programs of the same user follow nothing there either.
    return undefined;
  }
}

/** Names of the links among the first `most` entries of a folder, sorted; none where there is no folder. */
export function linksIn(folder: string, most: number): readonly string[] {
  return entriesIn(folder, most)
    .filter((entry) => entry.isSymbolicLink())
    .map(({ name }) => name)
    .sort();
}

/** The first `most` entries of a folder; none where there is no folder. */
export function entriesIn(folder: string, most: number): readonly Dirent[] {
  let entries: Dir;
  try {
    entries = opendirSync(folder);
  } catch {
    // Missing, no folder, or closed to whoever works for the same user.
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
