/**
 * What an agent's own file tool may not write on the host, because git would read it: nobody looks at such a file afterwards, as
 * `brought.ts` and `paused.ts` do at the end of a command.
 */
import { basename, dirname } from "node:path";
import { mayExist } from "./foreign.ts";

const BY_COMMAND = "a shell command writes it, and what git would run is looked at when the command ends";

/** Either makes a folder of any name a git folder, with settings that were written before. */
const MAKES: ReadonlySet<string> = new Set(["head", "commondir"]);

/** Why a file tool may not write the path, absolute and with links followed; undefined: git does not read it. */
export function gitReads(path: string): string | undefined {
  const names = path.toLowerCase().split("/");
  if (names.includes(".git")) return `it is git's own file: ${BY_COMMAND}`;
  if (MAKES.has(names.at(-1) ?? "")) return `it can make its folder a repository: ${BY_COMMAND}`;
  for (let folder = dirname(path); folder !== "/"; folder = dirname(folder)) {
    if (isGitFolder(folder))
      return `git takes the folder '${basename(folder)}' for a repository: ${BY_COMMAND}`;
  }
  return undefined;
}

/** Whether git may take a folder for a repository: by its HEAD, or its `commondir`, beside one part of the others. */
function isGitFolder(folder: string): boolean {
  const has = (name: string): boolean => mayExist(`${folder}/${name}`);
  return (
    (has("HEAD") && (has("objects") || has("refs") || has("commondir"))) ||
    (has("commondir") && has("gitdir"))
  );
}
