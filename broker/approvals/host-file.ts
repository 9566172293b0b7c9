/** A file that a command names, as the host sees it: where it really is, what is in it, and whether a world sees the same. */
import { createHash } from "node:crypto";
import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readSync,
  realpathSync,
  statSync,
} from "node:fs";
import { dirname, normalize } from "node:path";
import { isWithin } from "../projects.ts";

/** `hidden`: in a world something else may be there, that the host cannot look at. */
export type HostFile =
  | { readonly kind: "file"; readonly real: string }
  | { readonly kind: "missing" }
  | { readonly kind: "hidden" };

/** A world has its own of these. */
const WORLDS_OWN = ["/tmp", "/var/tmp", "/run", "/dev/shm"];

/**
 * Looks where a path leads; the kernel follows `..` behind links, so the path must not have been shortened. A link that leads
 * nowhere on the host may lead somewhere in a world.
 */
export function lookAt(path: string, project: string): HostFile {
  if (isWorldsOwn(normalize(path), project)) return { kind: "hidden" };
  const real = realOf(path);
  if (real === undefined) return { kind: isBehindDeadLink(path) ? "hidden" : "missing" };
  if (isWorldsOwn(real, project)) return { kind: "hidden" };
  return isPlain(real) ? { kind: "file", real } : { kind: "missing" };
}

/** Whether a folder is one thing to the host and to a world; one that is not there is. */
export function isSeenAlike(folder: string, project: string): boolean {
  const real = realOf(folder);
  if (isWorldsOwn(normalize(folder), project) || (real !== undefined && isWorldsOwn(real, project)))
    return false;
  return real !== undefined || !isBehindDeadLink(folder);
}

function isWorldsOwn(path: string, project: string): boolean {
  return !isWithin(path, project) && WORLDS_OWN.some((folder) => isWithin(path, folder));
}

function realOf(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch {
    // Missing, a loop, closed or too long: nothing that the host could look at.
    return undefined;
  }
}

function isPlain(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

/** Whether the last part of a path that is there is a link: it leads nowhere. */
function isBehindDeadLink(path: string): boolean {
  for (let part = path; part !== dirname(part); part = dirname(part)) {
    try {
      return lstatSync(part).isSymbolicLink();
    } catch {
      // Not there, or not to be looked at: what is above it decides.
    }
  }
  return false;
}

/** Takes from `budget` what it reads: `sha256:…`, or by inode and times what is longer, which no writer can set back. */
export function contentOf(path: string, budget: { bytes: number }): string {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  } catch {
    // Not ours to read, ignoring: its inode and times tell it apart as well.
    return inodeOf(statSync(path, { bigint: true, throwIfNoEntry: false }));
  }
  try {
    const stat = fstatSync(file, { bigint: true });
    if (!stat.isFile() || stat.size > BigInt(budget.bytes)) return inodeOf(stat);
    return hashOf(file, budget) ?? inodeOf(stat);
  } finally {
    closeSync(file);
  }
}

function inodeOf(stat: BigIntStats | undefined): string {
  if (stat === undefined) return "missing";
  return `inode:${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}`;
}

function hashOf(file: number, budget: { bytes: number }): string | undefined {
  const hash = createHash("sha256");
  const part = Buffer.alloc(256 * 1024);
  for (;;) {
    const length = readSync(file, part, 0, part.length, null);
    if (length === 0) return `sha256:${hash.digest("hex")}`;
    budget.bytes -= length;
    if (budget.bytes < 0) return undefined;
    hash.update(part.subarray(0, length));
  }
}
