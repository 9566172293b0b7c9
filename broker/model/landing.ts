import { lstatSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";

/** As many links as the kernel follows (path_resolution(7)). */
const MOST_LINKS = 40;

/**
 * Returns the place that open(2) with O_CREAT reaches for `path`, absolute: links followed, `..` taken behind links, missing names as
 * spelled. A dangling link leads to its missing target, where a write would make the file.
 */
export function landingOf(path: string, links = MOST_LINKS): string {
  try {
    return realpathSync.native(path);
  } catch {
    // Missing, closed or a loop, ignoring which: the existing part still counts.
  }
  const parent = dirname(path);
  if (parent === path) return path;
  const folder = landingOf(parent, links);
  const place = resolve(folder, basename(path));
  const target = links === 0 ? undefined : linkAt(place);
  if (target === undefined) return place;
  return landingOf(target.startsWith("/") ? target : `${folder}/${target}`, links - 1);
}

function linkAt(path: string): string | undefined {
  try {
    const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
    return isLink ? readlinkSync(path) : undefined;
  } catch {
    // Closed to this user, ignoring: then to the user's tools too.
    return undefined;
  }
}
