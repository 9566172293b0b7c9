/**
 * Denied names that some tool runs later, and that an isolated command may still write: the changes are held, so the host has no
 * such file before the operator applies the changes. Pure.
 *
 * A row of `fs.deny_write` is held when the row stands in the built-in tables, in the spelling of the shipped policies: git's own
 * files in the project's `.git`, and the `agents` rows of the table of files that run later. Every other row denies everywhere:
 * an author of `**\/.envrc` or `$PROJECT/.vscode/tasks.json` means isolated commands too.
 */
import { dirname } from "node:path";
import { coverOf, RUN_LATER_FOR_AGENTS, spelledOut } from "../../../world/backend.ts";
import { DENIED_WRITES, pathsOf } from "./default-denials.ts";
import { literalPattern } from "./file-scope.ts";

/** The end of a refusal's sentence about such a name. */
export const HELD_WHERE_ISOLATED =
  "a command listed in commands.isolated may write it: the change is then held, listed as 'autorun', and the operator's 'substrate apply' applies it";

const NAMES: ReadonlySet<string> = new Set([
  ...RUN_LATER_FOR_AGENTS,
  ...pathsOf(DENIED_WRITES).map((path) => path.replace(/^\$PROJECT\//, "")),
]);

/** Whether changes under a deny row, variables replaced, are held for an isolated command. */
export function isHeldRow(pattern: string, project: string): boolean {
  const folder = `${literalPattern(project)}/`;
  return (
    pattern.startsWith(folder) && spelledOut(pattern.slice(folder.length)).every((name) => NAMES.has(name))
  );
}

/** A row that holds in all folders anyway, and one about git's own files: those of nested repositories are sealed. */
const HOLDS_BELOW = /^\/(?:\.git|\*\*)\//;

/**
 * Deny rows, and the same below each folder of the project in which an agent's session began, and those between: tools read settings
 * there as in the project's own folder. Only for held rows; `began` are real paths.
 */
export function whereBegan(
  patterns: readonly string[],
  project: string,
  began: readonly string[],
): readonly string[] {
  const folders = foldersTo(project, began).map(literalPattern);
  if (folders.length === 0) return patterns;
  const { length } = literalPattern(project);
  return patterns.flatMap((pattern) => {
    const rest = pattern.slice(length);
    if (!isHeldRow(pattern, project) || HOLDS_BELOW.test(rest)) return [pattern];
    return [pattern, ...folders.map((folder) => `${folder}${rest}`)];
  });
}

/** The path as it would lie in the project's own folder; undefined for one that is in no folder in which a session began. */
export function asInProject(path: string, project: string, began: readonly string[]): string | undefined {
  const folder = foldersTo(project, began)
    .sort((one, other) => other.length - one.length)
    .find((each) => path.startsWith(`${each}/`));
  return folder === undefined ? undefined : `${project}${path.slice(folder.length)}`;
}

/** Bounds the rows of a world; where sessions began comes first. */
const MOST_FOLDERS = 128;

function foldersTo(project: string, began: readonly string[]): string[] {
  const folders = new Set(began.filter((folder) => folder.startsWith(`${project}/`)));
  for (const each of [...folders])
    for (let folder = dirname(each); folder.startsWith(`${project}/`); folder = dirname(folder))
      folders.add(folder);
  return [...folders].slice(0, MOST_FOLDERS);
}

/** Whether some row denies the path, and every such row is a held row. */
export function isHeldName(path: string, denied: readonly string[], project: string): boolean {
  const covering = denied.filter((pattern) => coverOf(pattern).covers(path));
  return covering.length > 0 && covering.every((pattern) => isHeldRow(pattern, project));
}
