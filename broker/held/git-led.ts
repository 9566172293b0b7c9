/**
 * Held changes that would lead git to programs of a command: `.git` files and links, and settings in folders that git may take for
 * repositories. The broker judges such files of plain commands when they end (git/brought.ts); nobody judges those that an agent's
 * apply or `changes.auto_apply` brings.
 */
import { lstatSync } from "node:fs";
import { posix } from "node:path";
import { coverOf, type HeldChange } from "../../world/backend.ts";
import { sealedInside } from "../policy/files/default-denials.ts";
import { parentOf } from "./change-path.ts";

/** Stands for a git folder in the patterns of what git runs. */
const ANY = "/folder";

/**
 * Beside settings and hooks, the legacy folders of addresses (gitrepository-layout(5)), which may name a program, and an unfinished
 * rebase or cherry-pick, which lists commands and names a merge strategy.
 */
const RUNS = [
  ...sealedInside(ANY),
  ...["remotes", "branches", "rebase-merge", "rebase-apply", "sequencer"].map((name) => `${ANY}/${name}`),
].map(coverOf);
const SETTINGS = ["config", "config.worktree", "hooks", "commondir", "remotes", "branches"] as const;

/** A git folder has these (setup.c, is_git_directory); behind a `commondir` git needs no other. */
const PARTS = ["objects", "refs"] as const;
const MAKES: readonly string[] = ["HEAD", ...PARTS];

const LINK_MODE = 0o120000;
const FOLDER_MODE = 0o040000;

/** Returns why only the operator may apply a byte path; undefined for other paths. `changes`: applied together. */
export function ledByGit(
  project: string,
  changes: readonly HeldChange[],
): (path: string) => string | undefined {
  const byPath = new Map(changes.map((change) => [change.path, change]));
  const brought = broughtBy(changes);
  const isOnHost = (path: string): boolean => isThere(project, path);
  const isInBoth = (path: string): boolean => brought.has(path) || isOnHost(path);
  const wasRepository = memoized((folder) => isRepository(hasIn(folder, isOnHost)));
  const mayBeRepository = memoized((folder) => mayBecomeOne(hasIn(folder, isInBoth)));
  const foldersOver = foldersThat(mayBeRepository);
  return (path) => {
    const change = byPath.get(path);
    // A folder that is applied for the sake of something below it has no change of its own.
    if (change === undefined || change.kind === "delete") return undefined;
    const type = change.mode & 0o170000;
    const isLink = type === LINK_MODE && path.endsWith(".git");
    if (isLink || (posix.basename(path) === ".git" && type !== FOLDER_MODE))
      return "it leads git to another folder, and git runs what that folder names";
    for (const folder of foldersOver(path)) {
      const below = folder === "" ? path : path.slice(folder.length + 1);
      const has = hasIn(folder, isInBoth);
      const makes =
        MAKES.includes(below) &&
        !wasRepository(folder) &&
        (has("HEAD") || has("commondir")) &&
        SETTINGS.some(has);
      if (makes || RUNS.some((cover) => cover.covers(`${ANY}/${below}`)))
        return "git may take the folder for a repository, and run what its settings and hooks name";
    }
    return undefined;
  };
}

type Has = (name: string) => boolean;

function hasIn(folder: string, has: (path: string) => boolean): Has {
  return (name) => has(folder === "" ? name : `${folder}/${name}`);
}

function isRepository(has: Has): boolean {
  return has("commondir") || (has("HEAD") && PARTS.every(has));
}

/** Later commands may add the missing parts. */
function mayBecomeOne(has: Has): boolean {
  return has("HEAD") || has("commondir") || has("worktrees") || PARTS.every(has);
}

/** The paths of changes and of the folders around them. Folders may be nested thousands deep, so none is taken twice. */
function broughtBy(changes: readonly HeldChange[]): ReadonlySet<string> {
  const brought = new Set<string>();
  for (const { path, kind } of changes) {
    if (kind === "delete") continue;
    for (let one = path; one !== "" && !brought.has(one); one = parentOf(one)) brought.add(one);
  }
  return brought;
}

/** Returns a function that lists the chosen folders over a path, the nearest first; the project itself is "". */
function foldersThat(chosen: (folder: string) => boolean): (path: string) => readonly string[] {
  const known = new Map<string, readonly string[]>([["", chosen("") ? [""] : []]]);
  return (path) => {
    const climbed: string[] = [];
    let over: readonly string[] | undefined;
    for (let folder = parentOf(path); over === undefined; folder = parentOf(folder)) {
      over = known.get(folder);
      if (over === undefined) climbed.push(folder);
    }
    for (const folder of climbed.toReversed()) {
      if (chosen(folder)) over = [folder, ...over];
      known.set(folder, over);
    }
    return over;
  };
}

function isThere(project: string, path: string): boolean {
  try {
    lstatSync(Buffer.concat([Buffer.from(`${project}/`), Buffer.from(path, "latin1")]));
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code !== "ENOENT" && code !== "ENOTDIR";
  }
}

function memoized(decide: (folder: string) => boolean): (folder: string) => boolean {
  const known = new Map<string, boolean>();
  return (folder) => {
    const before = known.get(folder);
    if (before !== undefined) return before;
    const decided = decide(folder);
    known.set(folder, decided);
    return decided;
  };
}
