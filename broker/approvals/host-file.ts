/** A file that a command names, as the host sees it: where it really is, what is in it, and whether a world sees the same. */
import { createHash } from "node:crypto";
import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readlinkSync,
  readSync,
  type Stats,
  statSync,
} from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { isWithin } from "../project/projects.ts";

/** `hidden`: in a world something else may be there, that the host cannot look at. */
export type HostFile =
  | { readonly kind: "file"; readonly real: string }
  | { readonly kind: "folder" }
  | { readonly kind: "missing" }
  | { readonly kind: "hidden" };

/** A world has its own of these. */
const WORLDS_OWN = ["/tmp", "/var/tmp", "/run", "/dev/shm", "/dev/fd", "/dev/stdin"];

/** To the broker these are its own processes and folders. */
const PROCESSES = /^\/proc\/(self|thread-self|[0-9]+)(\/|$)/;

/** As many as the kernel follows in one path (`MAXSYMLINKS`, include/linux/namei.h). */
const MAX_LINKS = 40;

/**
 * Looks where a path leads, one part after the other as the kernel does: links are followed where they stand, and `..` goes up
 * from where one is then. A link that leads nowhere on the host may lead somewhere in a world.
 */
export function lookAt(path: string, project: string): HostFile {
  const end = follow(path, project);
  if (end.kind !== "there") return end;
  const stat = statOf(end.real);
  if (stat?.isFile() === true) return { kind: "file", real: end.real };
  return { kind: stat?.isDirectory() === true ? "folder" : "missing" };
}

/** Whether a folder is one thing to the host and to a world; one that is not there is. */
export function isSeenAlike(folder: string, project: string): boolean {
  return follow(folder, project).kind !== "hidden";
}

type End =
  | { readonly kind: "there"; readonly real: string }
  | { readonly kind: "missing" }
  | { readonly kind: "hidden" };

function follow(path: string, project: string): End {
  const parts = partsOf(path);
  /** How many parts are left once the last link's own are walked. */
  let behindLink = Number.POSITIVE_INFINITY;
  let links = 0;
  let real = "/";
  for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
    const next = part === ".." ? dirname(real) : join(real, part);
    if (isWorldsOwn(next, project)) return { kind: "hidden" };
    const stat = statOf(next);
    if (stat === undefined) return { kind: parts.length >= behindLink ? "hidden" : "missing" };
    if (!stat.isSymbolicLink()) {
      real = next;
      continue;
    }
    links += 1;
    const target = targetOf(next);
    if (links > MAX_LINKS || target === undefined) return { kind: "hidden" };
    behindLink = Math.min(behindLink, parts.length);
    if (isAbsolute(target)) real = "/";
    parts.unshift(...partsOf(target));
  }
  return { kind: "there", real };
}

/** The bits of its mode that say who may start it, and as whom; 0 when nobody may, or it is not there. */
export function startBitsOf(path: string): number {
  return (statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o6111;
}

function partsOf(path: string): string[] {
  return path.split("/").filter((part) => part !== "" && part !== ".");
}

function isWorldsOwn(path: string, project: string): boolean {
  if (PROCESSES.test(path)) return true;
  // What a project lies below is in its world too, and so is what lies in the project.
  if (isWithin(path, project) || isWithin(project, path)) return false;
  return WORLDS_OWN.some((folder) => isWithin(path, folder));
}

function statOf(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    // Missing, closed or too long: nothing that the host could look at.
    return undefined;
  }
}

function targetOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    // Gone meanwhile, or closed.
    return undefined;
  }
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
