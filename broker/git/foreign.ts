/**
 * Decides whether git would read the settings of a repository other than the project's own. Settings are programs
 * (`core.fsmonitor`, aliases, filters), and any command may have made a repository in the project: rules that allow git
 * do not apply there.
 */
import { existsSync, lstatSync } from "node:fs";
import { dirname, join } from "node:path";
import { realPath } from "../model/host-paths.ts";
import { aboveGit, type GitFolders } from "./folder.ts";
import type { Place } from "../model/place.ts";
import { isWithin, type ProjectRules } from "../project/projects.ts";

/** Called only when a rule would allow a git command: checks a few folders, from `folder` up to the home folder. */
export function isForeignGit(
  folder: string,
  { project }: Pick<Place, "project">,
  rules: () => ProjectRules,
  gitFolders: GitFolders,
): boolean {
  // Undefined: a command may make a repository before git arrives there.
  const real = realPath(folder);
  if (real === undefined || !isWithin(real, project)) return true;
  for (let at = real; at !== project; at = dirname(at)) if (isRepository(at)) return true;
  return isNested(project, rules(), gitFolders);
}

/**
 * Whether a repository lies in another one, except when a person listed the inner, or the outer knows it as a worktree
 * or submodule.
 */
function isNested(project: string, rules: ProjectRules, gitFolders: GitFolders): boolean {
  if (!isRepository(project) || rules.roots.includes(project)) return false;
  if (!existsSync(join(project, ".git"))) return true;
  const link = gitFolders.of(project, () => rules);
  if (link === undefined) return isInRepository(project, rules);
  // Git reads the outer repository's settings; the outer repository may be nested too.
  return link.folder === undefined || isInRepository(aboveGit(link.folder.path), rules);
}

/**
 * Whether a parent folder below the home folder is a repository. A repository of the home folder itself holds settings
 * files (dotfiles) and says nothing about the projects below.
 */
function isInRepository(folder: string, { home }: ProjectRules): boolean {
  const ends = (at: string): boolean => at === "/" || isWithin(home, at);
  for (let at = dirname(folder); !ends(at); at = dirname(at)) if (isRepository(at)) return true;
  return false;
}

/**
 * Finds repositories like git: by a `.git` of any kind, or by the parts of a bare repository (setup.c,
 * `is_git_directory`).
 */
function isRepository(folder: string): boolean {
  if (mayExist(join(folder, ".git"))) return true;
  return ["HEAD", "objects", "refs"].every((name) => mayExist(join(folder, name)));
}

/** Whether a path exists or cannot be looked at. */
export function mayExist(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    // The folder is closed to the broker, ignoring why: unknown content counts as a repository.
    return true;
  }
}
