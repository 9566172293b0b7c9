/** What changed files hold now, as digests: as they were looked at, read here, or beside the broker when they are many. */
import { createHash } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, readlinkSync, readSync } from "node:fs";
import { bytesOf, rawPath } from "../overlay/names.ts";
import { contentDigest } from "../overlay/tree-hash.ts";
import type { DirectChange } from "./compare.ts";
import { looksBeside, MAX_HERE, type Where } from "./looks.ts";
import { isFile, isLink, type Now } from "./now.ts";

const PART = 64 * 1024;

/** More bytes than these are read by another process, however few the files: whoever reads them here holds the broker up. */
const MAX_BYTES_HERE = 2 * 1024 * 1024;

/**
 * For each change the digest of a file's bytes or of a link's target, "" of all else; null when it cannot be read, or is not
 * any more what was compared: never through a link, and never waiting for a pipe that took its place.
 */
export type Digests = readonly (string | null)[];

/** Rejects as {@link looksBeside}. */
export async function digestsOf(
  where: Where,
  changes: readonly DirectChange[],
  signal: AbortSignal,
): Promise<Digests> {
  const unread = changes.filter(({ now }) => now !== undefined && now.content === undefined);
  const beside = unread.length > MAX_HERE || bytesIn(unread) > MAX_BYTES_HERE;
  const read = beside ? await readBeside(where, unread, signal) : readHere(where, unread);
  return changes.map((change) => {
    if (change.now === undefined) return "";
    return change.now.content === undefined ? (read.get(change) ?? null) : change.now.content;
  });
}

/** Bytes of all files among them. */
export function bytesIn(changes: readonly DirectChange[]): number {
  return changes.reduce((sum, { now }) => sum + (now !== undefined && isFile(now.mode) ? now.size : 0), 0);
}

type Read = ReadonlyMap<DirectChange, string | null>;

async function readBeside(
  where: Where,
  changes: readonly DirectChange[],
  signal: AbortSignal,
): Promise<Read> {
  const paths = changes.map(({ path }) => path);
  const looks = await looksBeside(where, paths, signal);
  return new Map(changes.map((change, at) => [change, sameContent(change.now, looks.at(at))]));
}

function sameContent(before: Now | undefined, now: Now | "gone" | "unseen"): string | null {
  if (now === "gone" || now === "unseen" || now.mode !== before?.mode || now.size !== before.size)
    return null;
  return now.content ?? null;
}

function readHere({ project }: Where, changes: readonly DirectChange[]): Read {
  const part = Buffer.allocUnsafe(PART);
  const root = bytesOf(project);
  const digests = new Map<DirectChange, string | null>();
  for (const change of changes) {
    if (change.now === undefined) continue;
    try {
      digests.set(change, digest(rawPath(`${root}/${change.path}`), change.now, part));
    } catch {
      digests.set(change, null);
    }
  }
  return digests;
}

function digest(path: Buffer, now: Now, part: Buffer): string | null {
  if (isLink(now.mode)) return contentDigest(readlinkSync(path, { encoding: "buffer" }));
  // As the other process has it: what is empty says so without being opened.
  if (now.size === 0) return contentDigest(Buffer.alloc(0));
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const { ino, dev } = fstatSync(fd);
    const same = ino === Number(now.stats?.ino) && dev === Number(now.stats?.dev);
    return same ? digestOf(fd, now.size, part) : null;
  } finally {
    closeSync(fd);
  }
}

/** At most the size that was compared: a file that grows meanwhile has no end. */
function digestOf(fd: number, size: number, part: Buffer): string {
  const hash = createHash("sha256");
  for (let at = 0; at < size; ) {
    const count = readSync(fd, part, 0, Math.min(size - at, PART), at);
    if (count === 0) break;
    hash.update(part.subarray(0, count));
    at += count;
  }
  return hash.digest("hex");
}
