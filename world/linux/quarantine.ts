/**
 * Takes a denied name out of a project again. Whoever made it may swap or close the folders on the way while we go
 * there, so each is opened below the last one without following links (/proc/self/fd, since Node has no openat), and all
 * is moved by one rename: a walk through it would go wherever its maker leads it meanwhile. Paths are bytes: a name need
 * not be UTF-8.
 */
import { chmodSync, closeSync, constants, fstatSync, mkdirSync, openSync, renameSync } from "node:fs";
import { join } from "node:path";
import { uuidv7 } from "uuidv7";

/** From `include/uapi/asm-generic/fcntl.h`: Node has no name for it. A folder that may only be entered opens with it. */
const O_PATH = 0o10000000;
const WALK = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** What takes the place of a name in its own folder, where the quarantine is on another file system. */
const INERT = "substrate-denied-";

const SLASH = 0x2f;

/**
 * Moves what stands at the absolute `path` below `quarantine`, or, where no rename leads there, in its own folder to a name
 * that means nothing. Returns where it lies now. Throws what the kernel says.
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
      // A pattern that covers even that name is met once: it is the same thing for ever.
      if (codeOf(error) !== "EXDEV" || name.toString().startsWith(INERT)) throw error;
      const inert = Buffer.from(`${INERT}${uuidv7()}`);
      move(folder, name, below(folder, inert));
      return Buffer.concat([path.subarray(0, end + 1), inert]);
    }
  });
}

/** Acts in the folder `path` below `from`, which it closes. */
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

/** A folder gets another parent only from who may write to the folder itself, and its maker may have closed it. */
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

/** Undefined when it is no folder. */
function openFolder(path: Buffer): number | undefined {
  try {
    return openSync(path, WALK);
  } catch (error) {
    if (codeOf(error) === "ENOTDIR" || codeOf(error) === "ELOOP") return undefined;
    throw error;
  }
}

/** Acts, if need be once more with the folder open to its owner; it is closed again as it was. */
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
