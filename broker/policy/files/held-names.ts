/**
 * Denied names that some tool runs later, and that an isolated command may still write: the changes are held, so the host has no
 * such file before the operator applies the changes. Pure.
 *
 * A row of `fs.deny_write` is held when the row stands in the built-in tables, in the spelling of the shipped policies: git's own
 * files in the project's `.git`, and the `agents` rows of the table of files that run later. Every other row denies everywhere:
 * an author of `**\/.envrc` or `$PROJECT/.vscode/tasks.json` means isolated commands too.
 */
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

/** Whether some row denies the path, and every such row is a held row. */
export function isHeldName(path: string, denied: readonly string[], project: string): boolean {
  const covering = denied.filter((pattern) => coverOf(pattern).covers(path));
  return covering.length > 0 && covering.every((pattern) => isHeldRow(pattern, project));
}
