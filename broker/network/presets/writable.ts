/** What commands in worlds may write on the host: who can write a tool or its settings must not be believed by them. */
import { dirname } from "node:path";
import type { PolicyDocument } from "../../../schemas/generated/types.ts";
import { type FileScope, isPrivate, patternCovers } from "../../../world/backend.ts";
import { fileScope } from "../../policy/files/file-scope.ts";
import { isMarked, isWithin, neverBecause, type ProjectRules } from "../../project/projects.ts";

/** A path that nothing lies below: what a policy says of `$PROJECT` is another question. */
const NO_PROJECT = "/\0";

/** What the broker knows of projects. */
export type KnownProjects = {
  readonly rules: () => ProjectRules;
  /**
   * Whether a folder was the project of some command, without being marked as one: the command could write all of it, the
   * `.git/config` of a repository in it too.
   */
  readonly wasProject: (folder: string) => boolean;
};

/**
 * Whether a command under one of these policies may write this real path or something below it, or the path lies in what
 * is, was or could be a project.
 */
export function mayBeWritten(
  path: string,
  policies: readonly PolicyDocument[],
  projects: KnownProjects,
): boolean {
  return projectsAbove(path, projects).length > 0 || isOpenToAll(path, policies, projects.rules().home);
}

/** Whether a command in this project, or in any other, may write this real path of the project under one of these policies. */
export function projectMayWrite(
  path: string,
  project: string,
  policies: readonly PolicyDocument[],
  home: string,
): boolean {
  const inProject = policies.some((policy) => isOpen(path, fileScope(policy, project, home)));
  return inProject || isOpenToAll(path, policies, home);
}

/** The folders at and above a real path that are projects, were some or could be, the innermost first. */
export function projectsAbove(path: string, { rules, wasProject }: KnownProjects): readonly string[] {
  const found: string[] = [];
  for (let folder = path; ; folder = dirname(folder)) {
    if (wasProject(folder) || (isMarked(folder) && neverBecause(folder, rules()) === undefined))
      found.push(folder);
    if (folder === "/") return found;
  }
}

/** From any project. What worlds have of their own is not the host's. */
function isOpenToAll(path: string, policies: readonly PolicyDocument[], home: string): boolean {
  return !isPrivate(path) && policies.some((policy) => isOpen(path, fileScope(policy, NO_PROJECT, home)));
}

function isOpen(path: string, { write, denyWrite }: FileScope): boolean {
  const opens = write.map((scope) => scope.replace(/\/\*\*$/, "") || "/");
  const isOpened = opens.some((folder) => isWithin(path, folder) || isWithin(folder, path));
  return isOpened && !denyWrite.some((pattern) => patternCovers(pattern, path));
}
