/** The part of a PATH on which the broker finds programs that it runs outside of worlds. */
import { existsSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { isWithin } from "../model/folders.ts";
import { realPlace } from "../model/real-place.ts";
import { isBelowSettings, isMarked } from "./projects.ts";

/**
 * Leaves out the folders of a project's environment, which its commands write: a broker keeps the PATH of the shell that it was started
 * from, with what was activated there.
 */
export function hostPath(path: string | undefined, home: string): string {
  const folders = (path ?? "/usr/local/bin:/usr/bin:/bin").split(":");
  return folders.filter((folder) => isAbsolute(folder) && isHosts(realPlace(folder), home)).join(":");
}

/** An installation on PATH (`PREFIX/bin`) is no project, also where it is a repository: the broker refuses to work in it. */
function isHosts(folder: string, home: string): boolean {
  if (folder.endsWith("/node_modules/.bin") || existsSync(join(dirname(folder), "pyvenv.cfg"))) return false;
  for (let at = dirname(dirname(folder)); !isWithin(home, at) && !isBelowSettings(at, home); at = dirname(at))
    if (isMarked(at)) return false;
  return true;
}
