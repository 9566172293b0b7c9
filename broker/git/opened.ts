/**
 * Git folders outside the project that commands may write: a worktree's or a submodule's, and folders opened by
 * `fs.write`. No listing shows changes there, and a `.git` in the project can lead git to any such folder.
 */
import { type Dirent, readdirSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { isWithin } from "../model/folders.ts";
import { lookAt } from "../model/host-paths.ts";
import { readSmallFile } from "../model/small-file.ts";
import { isPausedState, PAUSED_FOLDERS, REFERENCE } from "./paused.ts";

/** The project whose `.git` files are judged. */
export type Outside = {
  readonly project: string;
  /** The git folder of a worktree or a submodule, if writable for commands. */
  readonly gitFolder: string | undefined;
  /** Owner of the files made by commands. */
  readonly uid: number;
  /** Whether the policy denies writing exactly this path. */
  readonly isDenied: (path: string) => boolean;
  /** Whether commands may write a path outside the project. */
  readonly mayWrite: (path: string) => boolean;
};

/** Bound on the search; each folder takes 0.01 to 0.03 ms. */
const MOST_FOLDERS = 10_000;

/** File timestamps lag by up to a kernel tick (1 to 10 ms). */
const TICK_MS = 10;

/** Git follows no longer link (setup.c, `read_gitfile_gently`). */
const MAX_LINK = 1024 * 1024;

/** The kernel's limit. */
const MOST_LINKS = 40;

const FIRST: ReadonlySet<string> = new Set(["config", "config.worktree", "hooks"]);

/** Listed last: code in the other files is gone by then. */
const LAST: ReadonlySet<string> = new Set(["commondir", "HEAD"]);

/**
 * Lists code and settings in a git folder that are no older than `since`, at any depth: a command can make nested git
 * folders wherever it may write. `isDenied` marks paths closed to commands.
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
    // The content of a moved folder has older times. The git folder itself changes with each commit.
    const isNew = isIn || (folder !== gitFolder && isSince(folder, since));
    for (const entry of entriesOf(folder)) {
      const path = join(folder, entry.name);
      if (isDenied(path)) continue;
      if (entry.isDirectory()) folders.push({ path, isNew });
      const isLast = LAST.has(entry.name);
      const isRead = basename(folder) === "hooks" || isPausedState(path);
      if (!isLast && !FIRST.has(entry.name) && !PAUSED_FOLDERS.has(entry.name) && !isRead) continue;
      if ((isNew || isSince(path, since)) && !isReference(path, gitFolder))
        (isLast ? last : first).push(path);
    }
  }
  return [...first, ...last];
}

/**
 * Whether the file is a ref or its log: a branch may be named `config` or `hooks/x`, and git reads neither as settings.
 */
function isReference(path: string, gitFolder: string): boolean {
  if (!/^(?:refs|logs)\//.test(relative(gitFolder, path))) return false;
  const stat = lookAt(path);
  const text = stat?.isFile() === true ? readSmallFile(path, MAX_LINK, stat.uid) : undefined;
  return text !== undefined && REFERENCE.test(text);
}

/**
 * Returns the target of a `.git` file or link if outside the project and writable for commands; otherwise undefined. A
 * missing target counts: the next command could make it.
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

/** Whether the folder is in git's usual place for a worktree of this repository. */
export function isOwnWorktree(folder: string, { gitFolder }: Pick<Outside, "gitFolder">): boolean {
  return gitFolder !== undefined && dirname(folder) === join(gitFolder, "worktrees");
}

/** Joins paths like git and the kernel: after a link, `..` may mean another folder than the text suggests. */
function from(folder: string, path: string): string {
  return path.startsWith("/") ? path : `${folder}/${path}`;
}

/** Resolves a path; missing parts stay as written. */
function realOf(path: string, left: number): string {
  try {
    return realpathSync.native(path);
  } catch {
    // A missing target or a closed folder.
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
    // Missing, or closed by its maker: git cannot enter either, and opening the folder would change its ctime.
    return [];
  }
}
