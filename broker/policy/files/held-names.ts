/**
 * Names that a deny list holds because some tool runs them later, and that an isolated command may write all the same: its changes
 * are held, so the host has none of them before the operator applies them. Pure.
 *
 * A row of `fs.deny_write` is one of them when it stands in the built-in tables, spelled as the shipped policies spell it: git's own
 * files in the project's `.git`, and what the table of files that run later marks `agents`. Every other row denies everywhere:
 * whoever writes `**\/.envrc` or `$PROJECT/.vscode/tasks.json` means isolated commands too.
 */
import { coverOf, RUN_LATER_FOR_AGENTS, spelledOut } from "../../../world/backend.ts";
import { DENIED_WRITES, pathsOf } from "./default-denials.ts";
import { literalPattern } from "./file-scope.ts";

/** What a refusal says of such a name, in a sentence. */
export const HELD_WHERE_ISOLATED =
  "a command that commands.isolated names may write it: the change is held then, listed as 'autorun', and the operator's 'substrate apply' puts it into the project";

const NAMES: ReadonlySet<string> = new Set([
  ...RUN_LATER_FOR_AGENTS,
  ...pathsOf(DENIED_WRITES).map((path) => path.replace(/^\$PROJECT\//, "")),
]);

/** Whether a row of a deny list, with its variables replaced, is one whose changes are held where the command is isolated. */
export function isHeldRow(pattern: string, project: string): boolean {
  const folder = `${literalPattern(project)}/`;
  return (
    pattern.startsWith(folder) && spelledOut(pattern.slice(folder.length)).every((name) => NAMES.has(name))
  );
}

/** Whether rows of these deny it, and each of the rows that do is such a row. */
export function isHeldName(path: string, denied: readonly string[], project: string): boolean {
  const covering = denied.filter((pattern) => coverOf(pattern).covers(path));
  return covering.length > 0 && covering.every((pattern) => isHeldRow(pattern, project));
}
