/**
 * What an agent's own file tool may not write on the host, because git would read it: nobody looks at such a file afterwards, as
 * `brought.ts` and `paused.ts` do at the end of a command.
 */
import { basename, dirname } from "node:path";
import { isWithin } from "../policy/files/path-denials.ts";
import { mayExist } from "./foreign.ts";

const BY_COMMAND = "a shell command writes it, and what git would run is looked at when the command ends";

/** Either makes a folder of any name a git folder, with settings that were written before. */
const MAKES: ReadonlySet<string> = new Set(["HEAD", "commondir"]);

/** What git has in its own folder. A worktree may lie in the folder of a bare repository, beside them. */
const OWN =
  /^(?:config(?:\..*)?|hooks|info|worktrees|modules|rebase-(?:merge|apply)|sequencer|remotes|branches|refs|objects|logs|rr-cache|lfs|commondir|gitdir|packed-refs|index|shallow|[A-Z_]+)$/;

/** macOS finds `.GIT` and `head` under those names. */
const FOLDS_CASE = process.platform === "darwin";

/** Folders above a file that are looked at. */
const MOST_ABOVE = 64;

/**
 * Why a file tool may not write the path, absolute and with links followed; undefined: git does not read it. Below the project, what lies
 * above does not count: it may be a worktree in the folder of a bare repository.
 */
export function gitReads(path: string, project: string): string | undefined {
  const rest = isWithin(path, project) ? path.slice(project.length) : path;
  const names = rest.split("/");
  const leaf = names.at(-1) ?? "";
  if (names.some((name) => name.toLowerCase() === ".git")) return `it is git's own file: ${BY_COMMAND}`;
  if (MAKES.has(leaf) || (FOLDS_CASE && /^(?:head|commondir)$/i.test(leaf)))
    return `it can make its folder a repository: ${BY_COMMAND}`;
  let isInTree = false;
  let below = path;
  for (let above = 0; above < MOST_ABOVE && below !== project && below !== "/"; above++) {
    const folder = dirname(below);
    const isApart = isInTree && !OWN.test(basename(below));
    if (!isApart && isGitFolder(folder))
      return `git takes the folder '${basename(folder)}' for a repository: ${BY_COMMAND}`;
    isInTree ||= mayExist(`${folder}/.git`);
    below = folder;
  }
  return undefined;
}

/** Whether git may take a folder for a repository, or for the one behind a `commondir`, which needs no HEAD. */
function isGitFolder(folder: string): boolean {
  const has = (name: string): boolean => mayExist(`${folder}/${name}`);
  return (
    has("commondir") || (has("objects") && has("refs")) || (has("HEAD") && (has("objects") || has("refs")))
  );
}
