/** Presets from the tools and settings that a broker with these policies trusts. */
import type { PolicyDocument } from "../../../schemas/generated/types.ts";
import { GitFolders } from "../../git/folder.ts";
import type { Remotes } from "../../git/remotes.ts";
import { Presets } from "./presets.ts";
import { type KnownProjects, mayBeWritten, projectMayWrite } from "./writable.ts";

/**
 * @param environment the broker's own variables: PATH finds the tools, and HOME is the rules' home.
 * @param policies every policy of this broker's commands: a path writable under any policy is trusted for none.
 */
export function presetsFor(
  environment: Readonly<Record<string, string | undefined>>,
  projects: KnownProjects,
  policies: () => readonly PolicyDocument[],
  remotes: Remotes,
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
    remotes,
    linkedFolder: (project) => folders.of(project, rules)?.folder?.path,
    mayWrite: (path, project) => projectMayWrite(path, project, policies(), rules().home),
  });
}
