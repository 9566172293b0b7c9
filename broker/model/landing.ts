import { lstatSync, readlinkSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";

/** As many links as the kernel follows (path_resolution(7)). */
const MOST_LINKS = 40;

/**
 * Returns the place that open(2) with O_CREAT reaches for `path`, absolute: links followed, `..` taken behind links, missing names as
 * spelled. A dangling link leads to its missing target, where a write would make the file. Of a loop, some path within it.
 */
export function landingOf(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return walk(path);
  }
}

/** From the root down, without an error for each missing name: callers choose the path, and its depth. */
function walk(path: string): string {
  const names = namesIn(path);
  let place = "/";
  let links = 0;
  for (let name = names.pop(); name !== undefined; name = names.pop()) {
    if (name === "..") {
      place = dirname(place);
      continue;
    }
    const next = join(place, name);
    const target = links < MOST_LINKS ? linkAt(next) : undefined;
    if (target === null) return join(next, ...names.reverse());
    if (target === undefined) {
      place = next;
      continue;
    }
    links += 1;
    if (target.startsWith("/")) place = "/";
    names.push(...namesIn(target));
  }
  return place;
}

/** Names in reverse order. */
function namesIn(path: string): string[] {
  return path
    .split("/")
    .filter((name) => name !== "" && name !== ".")
    .reverse();
}

/** The target of a link; undefined for anything else, null for a missing name. */
function linkAt(path: string): string | null | undefined {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined) return null;
    return found.isSymbolicLink() ? readlinkSync(path) : undefined;
  } catch {
    // Closed to this user, or too long, ignoring which: then to the user's tools too.
    return null;
  }
}
