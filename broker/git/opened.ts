/**
 * Git folders outside of the project that commands may write: the one of a worktree or a submodule, and what `fs.write` opens. No
 * listing shows what changes there, and a `.git` in the project can lead git to any folder there.
 */
import { type Dirent, lstatSync, readdirSync, readlinkSync, realpathSync, type Stats } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { isWithin } from "../model/folders.ts";
import { readSmallFile } from "../model/small-file.ts";

/** Whose `.git` is judged. */
export type Outside = {
  readonly project: string;
  /** The git folder of a worktree or a submodule, where commands may write it. */
  readonly gitFolder: string | undefined;
  /** Who the file belongs to when a command made it. */
  readonly uid: number;
  /** Whether a list of the policy denies to write exactly that path. */
  readonly isDenied: (path: string) => boolean;
  /** Whether commands may write a path outside of the project. */
  readonly mayWrite: (path: string) => boolean;
};

/** At 0.01 to 0.03 ms each. */
const MOST_FOLDERS = 10_000;

/** The clock of files is behind by up to a tick of the kernel (1 to 10 ms). */
const TICK_MS = 10;

/** Git follows no longer one (setup.c, `read_gitfile_gently`). */
const MAX_LINK = 1024 * 1024;

/** As the kernel. */
const MOST_LINKS = 40;

const FIRST: ReadonlySet<string> = new Set(["config", "config.worktree", "hooks"]);

/** By then what runs code is gone. */
const LAST: ReadonlySet<string> = new Set(["commondir", "HEAD"]);

/**
 * What git runs or reads as settings and is no older than `since`, at any depth of a git folder: a command can make another one
 * wherever it may write. `isDenied` says of a path that no command writes there.
 */
export function changedBelow(
  gitFolder: string,
  since: number,
  isDenied: (path: string) => boolean,
): readonly string[] {
  const [first, last]: [string[], string[]] = [[], []];
  const folders = [{ path: gitFolder, isNew: false }];
  for (let at = 0; at < folders.length && at < MOST_FOLDERS; at += 1) {
    const { path: folder, isNew: isIn } = folders[at] ?? { path: gitFolder, isNew: false };
    // What lies in a folder that was moved here has older times. Each commit changes the git folder itself.
    const isNew = isIn || (folder !== gitFolder && isSince(folder, since));
    for (const entry of entriesOf(folder)) {
      const path = join(folder, entry.name);
      if (isDenied(path)) continue;
      if (entry.isDirectory()) folders.push({ path, isNew });
      const isLast = LAST.has(entry.name);
      if (!isLast && !FIRST.has(entry.name) && basename(folder) !== "hooks") continue;
      if ((isNew || isSince(path, since)) && !isReference(path, gitFolder))
        (isLast ? last : first).push(path);
    }
  }
  return [...first, ...last];
}

/** A branch can be called `config`, or `hooks/x`: git reads neither its commit nor its log as settings. */
function isReference(path: string, gitFolder: string): boolean {
  if (!/^(?:refs|logs)\//.test(relative(gitFolder, path))) return false;
  const stat = lookAt(path);
  const text = stat?.isFile() === true ? readSmallFile(path, MAX_LINK, stat.uid) : undefined;
  return (
    text !== undefined && /^(?:ref: \S+|[0-9a-f]{40,64})\n$|^[0-9a-f]{40,64} [0-9a-f]{40,64} /.test(text)
  );
}

/**
 * The folder outside of the project to which a `.git` leads, where commands may write; undefined for every other path. A folder
 * that is missing can be made by the next command.
 */
export function ledOutside(link: string, { project, uid, mayWrite }: Outside): string | undefined {
  if (basename(link) !== ".git") return undefined;
  const stat = lookAt(link);
  if (stat === undefined || stat.isDirectory()) return undefined;
  const words = stat.isSymbolicLink() ? "" : readSmallFile(link, MAX_LINK, uid);
  if (words === undefined) return undefined;
  const to = words.replace(/^gitdir: /, "").replace(/[\r\n]+$/, "");
  const real = realOf(to === "" ? link : from(dirname(link), to), MOST_LINKS);
  return !isWithin(real, project) && mayWrite(real) ? real : undefined;
}

/** Whether a folder is where git puts the folder of a worktree of this repository. */
export function isOwnWorktree(folder: string, { gitFolder }: Pick<Outside, "gitFolder">): boolean {
  return gitFolder !== undefined && dirname(folder) === join(gitFolder, "worktrees");
}

/** As git and the kernel put a path together: `..` after a link is another folder than it looks. */
function from(folder: string, path: string): string {
  return path.startsWith("/") ? path : `${folder}/${path}`;
}

/** Where a path leads, or would if what is missing were there. */
function realOf(path: string, left: number): string {
  try {
    return realpathSync.native(path);
  } catch {
    // It leads to what is missing, or is closed to us.
    if (path === "/" || left === 0) return path;
    const above = realOf(dirname(path), left - 1);
    const here = join(above, basename(path));
    return lookAt(here)?.isSymbolicLink() === true ? realOf(from(above, readlinkSync(here)), left - 1) : here;
  }
}

function isSince(path: string, since: number): boolean {
  return (lookAt(path)?.ctimeMs ?? 0) >= since - TICK_MS;
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    // None, or closed by whoever made it: git does not come there either, and opening it changes its time.
    return [];
  }
}

function lookAt(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
