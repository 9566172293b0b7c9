/** Files that ssh's system-wide settings include. */
import { readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { SettingsFile } from "../model/world.ts";
import { coverOf } from "../plan/cover.ts";

const SETTINGS = "/etc/ssh/ssh_config";

/** Above what distributions include: a handful of short files. Further ones stay as ssh sees them. */
const MOST_FILES = 64;
const MOST_BYTES = 64 * 1024;

/**
 * Returns the included files with their text. ssh ends with "Bad owner or permissions" where such a file belongs neither to root nor to
 * its user (readconf.c), and a user namespace shows root's files as nobody's: no ssh would start, and so no `git fetch`. The world
 * shows copies, which are the user's own there.
 *
 * @param settings the file that ssh reads first; ssh looks at its owner nowhere.
 */
export function sshIncludes(settings = SETTINGS): readonly SettingsFile[] {
  const found = new Map<string, string>();
  const read = (path: string): void => {
    for (const included of includedBy(textOf(path) ?? "", dirname(settings)).flatMap(filesNamed)) {
      const text = found.has(included) || found.size === MOST_FILES ? undefined : trustedText(included);
      if (text === undefined) continue;
      found.set(included, text);
      read(included);
    }
  };
  read(settings);
  return [...found].map(([path, text]) => ({ path, text }));
}

/** Returns the patterns of `Include` lines, absolute (ssh_config(5)). */
function includedBy(text: string, folder: string): readonly string[] {
  return text
    .split("\n")
    .flatMap((line) => /^\s*include(?:\s+|\s*=\s*)(.+)$/i.exec(line)?.[1] ?? [])
    .flatMap((words) => words.match(/"[^"]*"|\S+/g) ?? [])
    .map((word) => resolve(folder, word.replace(/^"|"$/g, "")));
}

/** Returns existing files, in a real folder; patterns in the names of folders are left out. */
function filesNamed(pattern: string): readonly string[] {
  try {
    const folder = realpathSync.native(dirname(pattern));
    const { covers } = coverOf(join(folder, basename(pattern)));
    return readdirSync(folder)
      .map((name) => join(folder, name))
      .filter((path) => covers(path));
  } catch {
    // The folder is missing or unreadable, ignoring: ssh cannot include its files either.
    return [];
  }
}

/** Returns the text of a file that ssh accepts outside: root's, and writable by nobody else. */
function trustedText(path: string): string | undefined {
  try {
    const { uid, mode } = statSync(path);
    return uid === 0 && (mode & 0o022) === 0 ? textOf(path) : undefined;
  } catch {
    return undefined;
  }
}

function textOf(path: string): string | undefined {
  try {
    const stat = statSync(path);
    if (!stat.isFile() || stat.size > MOST_BYTES) return undefined;
    const text = readFileSync(path, "utf8");
    return text.includes("\0") ? undefined : text;
  } catch {
    return undefined;
  }
}
