/** Presets as a broker with these policies believes them. */
import type { PolicyDocument } from "../../../schemas/generated/types.ts";
import { GitFolders } from "../../git/folder.ts";
import { Presets } from "./presets.ts";
import { type KnownProjects, mayBeWritten, projectMayWrite } from "./writable.ts";

/**
 * @param environment the broker's own variables: by its PATH tools are found, and HOME is the rules' home.
 * @param policies every policy that a command of this broker may run under: what one of them lets be written, the presets
 *   of another do not believe either.
 */
export function presetsFor(
  environment: Readonly<Record<string, string | undefined>>,
  projects: KnownProjects,
  policies: () => readonly PolicyDocument[],
): Presets {
  const folders = new GitFolders();
  const { rules } = projects;
  const host = {
    environment,
    home: rules().home,
    mayBeWritten: (path: string) => mayBeWritten(path, policies(), projects),
  };
  return new Presets(host, {
    ...projects,
    linkedFolder: (project) => folders.of(project, rules)?.folder?.path,
    mayWrite: (path, project) => projectMayWrite(path, project, policies(), rules().home),
  });
}
