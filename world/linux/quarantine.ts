/**
 * Takes a denied name out of a project again. Whoever made it may swap the folders on the way while we go there, so
 * each is opened below the last one without following links (/proc/self/fd, since Node has no openat).
 */
import { closeSync, constants, mkdirSync, openSync, renameSync } from "node:fs";
import { cp, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { uuidv7 } from "uuidv7";

/** From `include/uapi/asm-generic/fcntl.h`: Node has no name for it. A folder that may only be entered opens with it. */
const O_PATH = 0o10000000;
const WALK = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** Moves what stands at `path` below `quarantine` and returns where it lies now. Throws what the kernel says. */
export async function takeOut(path: string, quarantine: string): Promise<string> {
  const place = join(quarantine, uuidv7(), basename(path));
  mkdirSync(dirname(place), { recursive: true, mode: 0o700 });
  const folder = openBelow(dirname(path));
  try {
    const source = join(`/proc/self/fd/${folder}`, basename(path));
    try {
      renameSync(source, place);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EXDEV") throw error;
      // Another file system: copied first, so that nothing is lost when the copy fails.
      await cp(source, place, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
      await rm(source, { recursive: true });
    }
    return place;
  } finally {
    closeSync(folder);
  }
}

function openBelow(folder: string): number {
  let opened = openSync("/", WALK);
  for (const name of folder.split("/").filter(Boolean)) {
    const next = openAndClose(join(`/proc/self/fd/${opened}`, name), opened);
    opened = next;
  }
  return opened;
}

function openAndClose(path: string, parent: number): number {
  try {
    return openSync(path, WALK);
  } finally {
    closeSync(parent);
  }
}
