/**
 * Moves a denied name out of a project. The command may swap or close folders on the path meanwhile, so each folder is opened
 * below the previous one without following links (/proc/self/fd, since Node has no openat), and the name is moved by one rename:
 * a recursive copy could be led elsewhere. Paths are bytes: a name need not be UTF-8.
 */
import { chmodSync, closeSync, constants, fstatSync, mkdirSync, openSync, renameSync } from "node:fs";
import { join } from "node:path";
import { uuidv7 } from "uuidv7";

/** From `include/uapi/asm-generic/fcntl.h`; missing in Node. Opens folders without read permission too. */
const O_PATH = 0o10000000;
const WALK = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** Prefix of the replacement name in the same folder, if the quarantine is on another file system. */
const INERT = "substrate-denied-";

const SLASH = 0x2f;

/**
 * Moves the absolute `path` below `quarantine`; if no rename leads there, renames it to a meaningless name in its own folder.
 * Returns the new location. Throws the kernel's error.
 */
export function takeOut(path: Buffer, quarantine: string): Buffer {
  const end = path.lastIndexOf(SLASH);
  const name = path.subarray(end + 1);
  const drawer = join(quarantine, uuidv7());
  mkdirSync(drawer, { recursive: true, mode: 0o700 });
  const place = Buffer.concat([Buffer.from(`${drawer}/`), name]);
  return insideOf(path.subarray(1, Math.max(end, 1)), openSync("/", WALK), (folder) => {
    try {
      move(folder, name, place);
      return place;
    } catch (error) {
      // A pattern that covers even the new name is met only once: renaming again would repeat for ever.
      if (codeOf(error) !== "EXDEV" || name.toString().startsWith(INERT)) throw error;
      const inert = Buffer.from(`${INERT}${uuidv7()}`);
      move(folder, name, below(folder, inert));
      return Buffer.concat([path.subarray(0, end + 1), inert]);
    }
  });
}

/** Calls `act` in the folder `path` below `from`, and closes `from`. */
function insideOf<T>(path: Buffer, from: number, act: (folder: number) => T): T {
  try {
    if (path.length === 0) return opened(from, () => act(from));
    const slash = path.indexOf(SLASH);
    const name = slash < 0 ? path : path.subarray(0, slash);
    const next = opened(from, () => openSync(below(from, name), WALK));
    return insideOf(slash < 0 ? path.subarray(path.length) : path.subarray(slash + 1), next, act);
  } finally {
    closeSync(from);
  }
}

/** Moving a folder to a new parent requires write permission on the folder itself; its maker may have removed that permission. */
function move(folder: number, name: Buffer, place: Buffer): void {
  const source = below(folder, name);
  try {
    renameSync(source, place);
  } catch (error) {
    const moved = codeOf(error) === "EACCES" ? openFolder(source) : undefined;
    if (moved === undefined) throw error;
    try {
      opened(moved, () => renameSync(source, place));
    } finally {
      closeSync(moved);
    }
  }
}

/** Returns undefined unless the path is a folder. */
function openFolder(path: Buffer): number | undefined {
  try {
    return openSync(path, WALK);
  } catch (error) {
    if (codeOf(error) === "ENOTDIR" || codeOf(error) === "ELOOP") return undefined;
    throw error;
  }
}

/** Calls `act`; after EACCES, calls again with the folder opened to its owner, then restores the mode. */
function opened<T>(folder: number, act: () => T): T {
  try {
    return act();
  } catch (error) {
    const { mode } = fstatSync(folder);
    if (codeOf(error) !== "EACCES" || (mode & 0o700) === 0o700) throw error;
    chmodSync(`/proc/self/fd/${folder}`, (mode & 0o7777) | 0o700);
    try {
      return act();
    } finally {
      chmodSync(`/proc/self/fd/${folder}`, mode & 0o7777);
    }
  }
}

function below(folder: number, name: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`/proc/self/fd/${folder}/`), name]);
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}
