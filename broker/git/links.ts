/** Follows a `.git` file or symlink (gitrepository-layout(5)), or a symlink named like a git folder. */
import { lstatSync, realpathSync } from "node:fs";
import { basename, dirname, relative, resolve } from "node:path";
import { isWithin } from "../model/folders.ts";
import { readSmallFile } from "../model/small-file.ts";

/** A line with a path. */
const MAX_LINK = 8192;

/**
 * Whether a link leads git to a folder of the project whose path has no `*.git` part: nothing is sealed there, so a
 * later command or process may change what git runs. Also true when undecidable.
 *
 * @param uid owner of files made by commands.
 * @param isWatched whether such a folder is judged at the end of each command.
 */
export function leadsAstray(
  link: string,
  { project, uid }: { readonly project: string; readonly uid: number },
  isWatched: (gitFolder: string) => boolean = () => false,
): boolean {
  try {
    const stat = lstatSync(link, { throwIfNoEntry: false });
    if (stat === undefined || stat.isDirectory()) return false;
    const text = stat.isSymbolicLink() ? undefined : readSmallFile(link, MAX_LINK, uid);
    if (text === undefined && !stat.isSymbolicLink()) return true;
    const to = text === undefined ? link : resolve(dirname(link), text.replace(/^gitdir:\s*/, "").trimEnd());
    const real = realOf(to);
    // A folder created later under such a name is sealed and judged then.
    if (real === undefined) return text === undefined || !isCalledGit(to, project);
    const isOther = isWithin(real, project) && !isCalledGit(real, project);
    return isOther && !isWatched(real) && !isWatched(repositoryOf(real));
  } catch {
    return true;
  }
}

/** Returns the repository of a worktree's folder: `REPOSITORY/worktrees/NAME`. */
function repositoryOf(gitFolder: string): string {
  const worktrees = dirname(gitFolder);
  return basename(worktrees) === "worktrees" ? dirname(worktrees) : gitFolder;
}

function isCalledGit(path: string, project: string): boolean {
  return relative(project, path)
    .split("/")
    .some((name) => name.endsWith(".git"));
}

/** Resolves a path; undefined when missing. */
function realOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
