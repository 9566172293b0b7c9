/**
 * Settings and hooks of git that changed while a command ran, for when its listing does not have them all: a command may end its
 * own world, write more files than are listed, or close the folder. A change's time (ctime) is the kernel's: no command sets it.
 */
import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
} from "node:fs";
import { join } from "node:path";

/** From `include/uapi/asm-generic/fcntl.h`: Node has no name for it. */
const O_PATH = 0o10000000;

/** At 0.01 to 0.03 ms each. */
const MOST_FOLDERS = 100_000;

/** So many are looked into in one turn of the broker's thread. */
const FOLDERS_A_TURN = 200;

/** The clock of files is behind by up to a tick of the kernel (1 to 10 ms). */
const TICK_MS = 10;

const NAMES: ReadonlySet<string> = new Set(["config", "config.worktree"]);

/** Calls `visit` with paths below `project` but in `sealed` (`.git`), each while the folders above it are open to their owner. */
export async function searchChanged(
  project: string,
  since: number,
  sealed: string | undefined,
  visit: (path: string) => void,
): Promise<void> {
  const folders = [""];
  for (let at = 0; at < folders.length && at < MOST_FOLDERS; at += 1) {
    if (at % FOLDERS_A_TURN === FOLDERS_A_TURN - 1) await new Promise((resolve) => setImmediate(resolve));
    const folder = folders[at] ?? "";
    if (folder !== sealed) folders.push(...look(project, folder, since - TICK_MS, visit));
  }
}

/** Returns the folders in it; those of a closed one are looked through at once, since it is closed again. */
function look(
  project: string,
  folder: string,
  since: number,
  visit: (path: string) => void,
): readonly string[] {
  try {
    return entries(project, folder, since, visit);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EACCES") return [];
    whileOpen(join(project, folder), () => {
      for (const below of entries(project, folder, since, visit)) lookAtAll(project, below, since, visit);
    });
    return [];
  }
}

function lookAtAll(project: string, folder: string, since: number, visit: (path: string) => void): void {
  for (const below of look(project, folder, since, visit)) lookAtAll(project, below, since, visit);
}

function entries(
  project: string,
  folder: string,
  since: number,
  visit: (path: string) => void,
): readonly string[] {
  const isHooks = /(?:^|\/)hooks$/.test(folder);
  const folders: string[] = [];
  for (const entry of readdirSync(join(project, folder), {
    withFileTypes: true,
  })) {
    const path = join(folder, entry.name);
    const { ctimeMs } = lstatSync(join(project, path), {
      throwIfNoEntry: false,
    }) ?? { ctimeMs: 0 };
    if (entry.isDirectory()) folders.push(path);
    else if ((isHooks || NAMES.has(entry.name)) && ctimeMs >= since) visit(path);
  }
  return folders;
}

/** A folder that its owner has closed, opened for `act` and closed again. What stands behind a link stays as it is. */
function whileOpen(path: string, act: () => void): void {
  const folder = openSync(path, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    const name = `/proc/self/fd/${folder}`;
    const { mode, uid } = fstatSync(folder);
    if (uid !== process.getuid?.() || (mode & 0o700) === 0o700 || readlinkSync(name) !== path) return;
    chmodSync(name, (mode & 0o7777) | 0o700);
    try {
      act();
    } finally {
      chmodSync(name, mode & 0o7777);
    }
  } finally {
    closeSync(folder);
  }
}
