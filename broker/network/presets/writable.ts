/** Decides which host paths commands may write: writable tools and settings are not trusted. */
import { dirname } from "node:path";
import type { PolicyDocument } from "../../../schemas/generated/types.ts";
import { type FileScope, isPrivate, patternCovers } from "../../../world/backend.ts";
import { fileScope } from "../../policy/files/file-scope.ts";
import { isMarked, isWithin, neverBecause, type ProjectRules } from "../../project/projects.ts";

/** A project path with no children: `$PROJECT` in a policy is checked separately. */
const NO_PROJECT = "/\0";

/** The broker's knowledge of projects. */
export type KnownProjects = {
  readonly rules: () => ProjectRules;
  /**
   * Whether a folder was the project of some command without being marked as a project: the command could write all of
   * it, including the `.git/config` of a repository.
   */
  readonly wasProject: (folder: string) => boolean;
};

/**
 * Whether a command under any of these policies may write this real path or a path below, or the path lies in a
 * present, past or possible project.
 */
export function mayBeWritten(
  path: string,
  policies: readonly PolicyDocument[],
  projects: KnownProjects,
): boolean {
  return projectsAbove(path, projects).length > 0 || isOpenToAll(path, policies, projects.rules().home);
}

/** Whether a command in this or any other project may write this real path under any of these policies. */
export function projectMayWrite(
  path: string,
  project: string,
  policies: readonly PolicyDocument[],
  home: string,
): boolean {
  const inProject = policies.some((policy) => isOpen(path, fileScope(policy, project, home)));
  return inProject || isOpenToAll(path, policies, home);
}

/** Lists the folders at and above a real path that are, were or could be projects, the innermost first. */
export function projectsAbove(path: string, { rules, wasProject }: KnownProjects): readonly string[] {
  const found: string[] = [];
  for (let folder = path; ; folder = dirname(folder)) {
    if (wasProject(folder) || (isMarked(folder) && neverBecause(folder, rules()) === undefined))
      found.push(folder);
    if (folder === "/") return found;
  }
}

/** Whether commands of any project may write the path. A world's private paths are not the host's. */
function isOpenToAll(path: string, policies: readonly PolicyDocument[], home: string): boolean {
  return !isPrivate(path) && policies.some((policy) => isOpen(path, fileScope(policy, NO_PROJECT, home)));
}

function isOpen(path: string, { write, denyWrite }: FileScope): boolean {
  const opens = write.map((scope) => scope.replace(/\/\*\*$/, "") || "/");
  const isOpened = opens.some((folder) => isWithin(path, folder) || isWithin(folder, path));
  return isOpened && !denyWrite.some((pattern) => patternCovers(pattern, path));
}
