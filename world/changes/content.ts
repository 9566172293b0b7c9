/** Digests the present content of changed files. */
import { createHash } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, readlinkSync, readSync } from "node:fs";
import { rawPath } from "../overlay/names.ts";
import { contentDigest } from "../overlay/tree-hash.ts";
import type { DirectChange } from "./compare.ts";
import { isFile, isLink, type Now } from "./now.ts";
import type { TimeSlices } from "./time-slices.ts";

const PART = 64 * 1024;

/**
 * Per change, the digest of a file's bytes or of a link's target; "" for other types; null if unreadable, or different from the
 * compared file. Follows no link, and never blocks on a pipe in the file's place.
 */
export type Digests = readonly (string | null)[];

/** `root` is the project's path, one letter per byte. Throws the errors of `turns`. */
export async function digestsOf(
  root: string,
  changes: readonly DirectChange[],
  turns: TimeSlices,
): Promise<Digests> {
  const part = Buffer.allocUnsafe(PART);
  const digests: (string | null)[] = [];
  for (const { path, now } of changes) {
    const passed = turns.next();
    if (passed !== undefined) await passed;
    digests.push(await digestOf(rawPath(`${root}/${path}`), now, part, turns));
  }
  return digests;
}

/** Returns the sum of the files' bytes. */
export function bytesIn(changes: readonly DirectChange[]): number {
  return changes.reduce((sum, { now }) => sum + (now !== undefined && isFile(now.mode) ? now.size : 0), 0);
}

async function digestOf(
  path: Buffer,
  now: Now | undefined,
  part: Buffer,
  turns: TimeSlices,
): Promise<string | null> {
  if (now === undefined || !(isFile(now.mode) || isLink(now.mode))) return "";
  // An empty file may be unreadable.
  if (isFile(now.mode) && now.size === 0) return contentDigest(Buffer.alloc(0));
  const fd = isFile(now.mode) ? openedFile(path, now) : undefined;
  if (fd === null) return null;
  if (fd === undefined) return linkDigest(path);
  try {
    return await fileDigest(fd, now.size, part, turns);
  } finally {
    closeSync(fd);
  }
}

function linkDigest(path: Buffer): string | null {
  try {
    return contentDigest(readlinkSync(path, { encoding: "buffer" }));
  } catch {
    // Gone or no longer a link, ignoring: reported as null.
    return null;
  }
}

/** Returns null if the file cannot be opened, or is not the compared file. */
function openedFile(path: Buffer, now: Now): number | null {
  let fd: number | undefined;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const { ino, dev } = fstatSync(fd);
    if (ino === Number(now.stats.ino) && dev === Number(now.stats.dev)) return fd;
  } catch {
    // The file cannot be opened, ignoring: reported as null.
  }
  if (fd !== undefined) closeSync(fd);
  return null;
}

/** Reads at most the compared size: a growing file could have no end. */
async function fileDigest(fd: number, size: number, part: Buffer, turns: TimeSlices): Promise<string | null> {
  const hash = createHash("sha256");
  for (let at = 0; at < size; ) {
    const passed = turns.next();
    if (passed !== undefined) await passed;
    const count = readPart(fd, part, Math.min(size - at, PART), at);
    if (count === null) return null;
    if (count === 0) break;
    hash.update(part.subarray(0, count));
    at += count;
  }
  return hash.digest("hex");
}

function readPart(fd: number, part: Buffer, length: number, at: number): number | null {
  try {
    return readSync(fd, part, 0, length, at);
  } catch {
    // The file cannot be read, ignoring: reported as null.
    return null;
  }
}
