import { posix } from "node:path";
import { HOME_MARK } from "../words/command.ts";

/** A trailing glob for all files of a folder: `/*`, `/.*`, `/**`, `/{*,.*}` (two words after brace expansion). */
const WHOLE_FOLDER = /\/\.?\*+\/*$/;

/** Returns a command's working directory after the earlier `cd`s; null if unknown. */
export function folderAfter(cwd: string, home: string, moves: readonly string[] | null): string | null {
  if (moves === null) return null;
  let folder = cwd;
  for (const move of moves) folder = posix.resolve(folder, withHome(move, home));
  return folder;
}

export function withHome(text: string, home: string): string {
  return text.includes("\0") ? text.replaceAll(HOME_MARK, home) : text;
}

/** Whether the word may be a path with other spellings. */
export function looksLikePath(text: string): boolean {
  return (text.includes("/") && !text.includes("://")) || text === "." || text === "..";
}

/** Removes `//`, `/.`, `/..` and a trailing slash. The result is absolute for a known folder or an absolute path. */
export function normalPath(text: string, folder: string | null): string {
  const path = folder === null ? posix.normalize(text) : posix.resolve(folder, text);
  const trimmed = path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;
  // POSIX leaves `//x` alone; Linux does not.
  return trimmed.startsWith("//") ? trimmed.slice(1) : trimmed;
}

/** Turns `dir/*` into `dir`, for a glob that the shell expands; null for other words. */
export function wholeFolder(glob: string, folder: string | null): string | null {
  if (/^\.?\*+$/.test(glob)) return folder;
  const match = WHOLE_FOLDER.exec(glob);
  if (match === null) return null;
  const head = glob.slice(0, match.index) || "/";
  return /[*?[]/.test(head) ? wholeFolder(head, folder) : head;
}
