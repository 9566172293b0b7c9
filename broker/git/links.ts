/** Follows a `.git` file or symlink (gitrepository-layout(5)), or a symlink named like a git folder. */
import { lstatSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { isWithin } from "../model/folders.ts";
import { readSmallFile } from "../model/small-file.ts";
import { type TreeSettings, treeSettings } from "./config.ts";

/** A line with a path. */
const MAX_LINK = 8192;

/** Git's own settings take some hundred bytes. Longer files are not read. */
export const MAX_CONFIG = 1024 * 1024;

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

/**
 * Whether git works in the folder that a git folder's `core.worktree` names only for who stands there: its `.git` leads back, and no
 * link lies on the way, which a later command could let lead elsewhere.
 */
export function worksAtHome(gitFolder: string, tree: string, uid: number): boolean {
  try {
    const real = realpathSync(gitFolder);
    const folder = resolve(real, tree);
    const back = pointedTo(join(folder, ".git"), uid);
    return realOf(folder) === folder && back !== undefined && realOf(back) === real;
  } catch {
    return false;
  }
}

/**
 * Whether a `.git` leads git to a folder whose `core.worktree` names another folder than that of this `.git`: the person's next
 * `git reset --hard` here would write there. Also where the folder is missing: nobody judges this `.git` again once it is there.
 */
export function worksElsewhere(link: string, uid: number): boolean {
  try {
    const to = pointedTo(link, uid);
    if (to === undefined) return false;
    const gitFolder = realOf(to);
    if (gitFolder === undefined) return true;
    const tree = treeNamedIn(gitFolder, uid);
    return tree !== undefined && realOf(resolve(gitFolder, tree)) !== realOf(dirname(link));
  } catch {
    return true;
  }
}

/** Returns where a `.git` that is a file or a symlink leads; undefined for anything else. */
function pointedTo(link: string, uid: number): string | undefined {
  const stat = lstatSync(link, { throwIfNoEntry: false });
  if (stat?.isSymbolicLink() === true) return resolve(dirname(link), readlinkSync(link));
  const text = stat?.isFile() === true ? readSmallFile(link, MAX_LINK, uid) : undefined;
  return text === undefined ? undefined : resolve(dirname(link), text.replace(/^gitdir:\s*/, "").trimEnd());
}

/** Returns the value of `core.worktree` in force in a git folder; undefined without one. */
export function treeNamedIn(gitFolder: string, uid: number): string | undefined {
  const settingsIn = (name: string): TreeSettings | undefined => {
    const text = readSmallFile(join(gitFolder, name), MAX_CONFIG, uid);
    return text === undefined ? undefined : treeSettings(text);
  };
  const settings = settingsIn("config");
  const own = settings?.worktreeConfig === true ? settingsIn("config.worktree")?.worktree : undefined;
  return own ?? settings?.worktree;
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
