/** A file named by a command, as the host sees it: its real path, its content, and whether a world sees the same file. */
import { createHash } from "node:crypto";
import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  openSync,
  readlinkSync,
  readSync,
  statSync,
} from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { fileIdentity, lookAt } from "../model/host-paths.ts";
import { isWithin } from "../project/projects.ts";

/** `hidden`: a world may have another file at this path, invisible to the host. */
export type HostFile =
  | { readonly kind: "file"; readonly real: string }
  | { readonly kind: "folder" }
  | { readonly kind: "missing" }
  | { readonly kind: "hidden" };

/** Folders that each world has for itself. */
const WORLDS_OWN = ["/tmp", "/var/tmp", "/run", "/dev/shm", "/dev/fd", "/dev/stdin"];

/** For the broker, these paths mean its own processes. */
const PROCESSES = /^\/proc\/(self|thread-self|[0-9]+)(\/|$)/;

/** The kernel's bound on links in one path (`MAXSYMLINKS`, include/linux/namei.h). */
const MAX_LINKS = 40;

/** What decides whether host and world see the same file at a path. */
export type Seen = {
  readonly project: string;
  /** `path/**`: the world reads the host's files there and has commands' writes in a layer of its own (`fs.scratch`). */
  readonly scratch: readonly string[];
};

/**
 * Resolves a path part by part like the kernel: links are followed in place, and `..` goes up from the resolved folder. A link
 * dangling on the host may lead to a file in a world.
 */
export function hostFileAt(path: string, seen: Seen): HostFile {
  const end = follow(path, seen);
  if (end.kind !== "there") return end;
  const stat = lookAt(end.real);
  if (stat?.isFile() === true) return { kind: "file", real: end.real };
  return { kind: stat?.isDirectory() === true ? "folder" : "missing" };
}

/** Whether host and world see the same folder; a missing folder counts as the same. */
export function isSeenAlike(folder: string, seen: Seen): boolean {
  return follow(folder, seen).kind !== "hidden";
}

type End =
  | { readonly kind: "there"; readonly real: string }
  | { readonly kind: "missing" }
  | { readonly kind: "hidden" };

function follow(path: string, seen: Seen): End {
  const parts = partsOf(path);
  /** Number of parts left after the parts of the last link. */
  let behindLink = Number.POSITIVE_INFINITY;
  let links = 0;
  let real = "/";
  for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
    const next = part === ".." ? dirname(real) : join(real, part);
    if (isWorldsOwn(next, seen)) return { kind: "hidden" };
    const stat = lookAt(next);
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

/** Returns the mode bits for executing, setuid and setgid; 0 for a missing file. */
export function startBitsOf(path: string): number {
  return (statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o6111;
}

function partsOf(path: string): string[] {
  return path.split("/").filter((part) => part !== "" && part !== ".");
}

function isWorldsOwn(path: string, { project, scratch }: Seen): boolean {
  if (PROCESSES.test(path)) return true;
  // A world also contains the folders above the project, and the project itself.
  if (isWithin(path, project) || isWithin(project, path)) return false;
  return (
    WORLDS_OWN.some((folder) => isWithin(path, folder)) ||
    scratch.some((scope) => isWithin(path, scope.replace(/\/\*\*$/, "")))
  );
}

function targetOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    // Removed meanwhile, or closed.
    return undefined;
  }
}

/**
 * Returns `sha256:…` and deducts the bytes read from `budget`; beyond the budget, returns inode and times, where no writer can
 * set back the ctime.
 */
export function contentOf(path: string, budget: { bytes: number }): string {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  } catch {
    // Unreadable for the broker, ignoring: inode and times identify the file as well.
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
  return `inode:${fileIdentity(stat)}`;
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
