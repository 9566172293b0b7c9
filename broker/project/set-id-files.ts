import { lstatSync, type Stats } from "node:fs";
import { join } from "node:path";

/** Bound on the files of one command that are looked at, each for some microseconds. */
const MAX_LOOKS = 10_000;

/** S_ISUID with a right to execute, S_ISGID with the group's: without it the bit means mandatory locks (inode(7)). */
const SET_USER_ID = 0o4000;
const ANYBODYS_EXECUTE = 0o111;
const SET_GROUP_ID = 0o2010;

/**
 * A sentence for programs that a command left with a set-user-id or set-group-id bit: whoever of this machine's users starts one has the
 * rights of the broker's user. Undefined without any. `paths`: written files, relative to the project.
 */
export function setIdWords(project: string, paths: readonly string[]): string | undefined {
  const found = paths.slice(0, MAX_LOOKS).filter((path) => isSetId(join(project, path)));
  const [first] = found;
  if (first === undefined) return undefined;
  const others = found.length === 1 ? "" : ` and ${found.length - 1} more`;
  return `'${first}'${others}: set-user-id or set-group-id, so whoever of this machine's users can start such a program does so with your rights ('chmod ug-s' ends that)`;
}

function isSetId(path: string): boolean {
  const status = look(path);
  if (status?.isFile() !== true) return false;
  const { mode } = status;
  const isUsers = (mode & SET_USER_ID) !== 0 && (mode & ANYBODYS_EXECUTE) !== 0;
  return isUsers || (mode & SET_GROUP_ID) === SET_GROUP_ID;
}

function look(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    // A folder on its way has become a file, or closed, ignoring: then nobody starts what was there by that name.
    return undefined;
  }
}
