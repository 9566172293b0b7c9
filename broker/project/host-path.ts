/** The part of a PATH on which the broker finds programs that it runs outside of worlds. */
import { existsSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { isWithin } from "../model/folders.ts";
import { realPlace } from "../model/real-place.ts";
import { isBelowSettings, isMarked } from "./projects.ts";
import { HOME_PROGRAMS } from "./unmarked.ts";

const USUAL = "/usr/local/bin:/usr/bin:/bin";

/** Homebrew's installations are repositories. */
const INSTALLATIONS = ["/opt/homebrew", "/usr/local", "/home/linuxbrew/.linuxbrew"] as const;

/**
 * Leaves out the folders of a project's environment, which its commands write: a broker keeps the PATH of the shell that it was started
 * from, with what was activated there.
 *
 * @param home real path.
 */
export function hostPath(path: string | undefined, home: string): string {
  const folders = (path ?? "")
    .split(":")
    .filter((folder) => isAbsolute(folder) && isHosts(realPlace(folder), home));
  return folders.length === 0 ? USUAL : folders.join(":");
}

function isHosts(folder: string, home: string): boolean {
  if (INSTALLATIONS.some((prefix) => isWithin(folder, prefix))) return true;
  if (folder.endsWith("/node_modules/.bin") || existsSync(join(dirname(folder), "pyvenv.cfg"))) return false;
  // Any other folder of the home may be a project, with a mark or without.
  if (isWithin(folder, home))
    return isBelowSettings(folder, home) || HOME_PROGRAMS.some((name) => folder === join(home, name));
  for (let at = folder; at !== dirname(at); at = dirname(at)) if (isMarked(at)) return false;
  return true;
}
