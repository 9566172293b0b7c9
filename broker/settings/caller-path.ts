/** PATH of a shell on the host, as it can be used in a world. */
import { realpathSync } from "node:fs";
import { isWithin } from "../model/folders.ts";

/** Of these every world has its own (CONTRACT §7): what the host has there no command sees. */
const WORLDS_OWN = ["/tmp", "/var/tmp", "/run", "/dev/shm"];

/**
 * Without the folders that no world shows (SUBSTRATE_HOME, where the shims lie), and with the real path of a folder that is named by
 * a link in `/run` or `/tmp`, as version managers do for each shell (fnm). Everything else stays as it is, in its order: folders
 * that do not exist, relative ones, and a project's own.
 */
export function ownPath(path: string, hidden: string): string {
  return path
    .split(":")
    .filter((folder) => !leadsTo(hidden, folder.replace(/\/+$/, "")))
    .map((folder) => (WORLDS_OWN.some((own) => folder.startsWith(`${own}/`)) ? placeBehind(folder) : folder))
    .join(":");
}

/** Whoever reaches the home by a link writes the shims' folder so, too. */
function leadsTo(hidden: string, folder: string): boolean {
  return isWithin(folder.endsWith("/shims") ? realOr(folder) : folder, hidden);
}

function placeBehind(folder: string): string {
  const real = realOr(folder);
  return WORLDS_OWN.some((own) => isWithin(real, own)) || real.includes(":") ? folder : real;
}

function realOr(folder: string): string {
  try {
    return realpathSync.native(folder);
  } catch {
    // Not there, or not ours to look into, ignoring: it is what is written.
    return folder;
  }
}
