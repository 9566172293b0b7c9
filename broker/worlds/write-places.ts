/**
 * The folders of `fs.write` outside the project: finds their current state, and creates missing folders. A world
 * binds the folders existing at its start, so a folder created or replaced later takes effect only in another world.
 */
import { type BigIntStats, closeSync, constants, fstatSync, mkdirSync, openSync } from "node:fs";
import { basename, dirname } from "node:path";
import { isKernels, isPrivate, type FileScope, patternCovers, type WritePlace } from "../../world/backend.ts";
import { isWithin } from "../model/folders.ts";
import { lookExactlyAt } from "../model/host-paths.ts";

type Site = {
  readonly project: string;
  readonly gitFolder?: string;
  readonly files: FileScope;
  readonly hidden: readonly string[];
  readonly sealed: readonly string[];
};

/**
 * Returns the folders (`path/**`) to bind separately. Skips folders inside another such folder, where commands create them, and
 * folders hidden or read-only in every world. Pure.
 */
export function placesToOpen({ project, gitFolder, files, hidden, sealed }: Site): readonly string[] {
  const folders = files.write.filter((path) => path.endsWith("/**")).map((path) => path.slice(0, -3));
  const never = [...hidden, ...sealed];
  return [...new Set(folders)].filter(
    (path) =>
      path !== "" &&
      path !== project &&
      path !== gitFolder &&
      !folders.some((other) => other !== path && isWithin(path, other === "" ? "/" : other)) &&
      (isWithin(path, project) || !(isPrivate(path) || isKernels(path))) &&
      !never.some((folder) => isWithin(path, folder)) &&
      ![...files.denyRead, ...files.denyWrite].some((pattern) => patternCovers(pattern, path)),
  );
}

/** Returns the current state of a place. Creates a missing folder first, if its parent belongs to this user. */
export function openPlace(path: string, uid: number): WritePlace {
  const stat = lookExactlyAt(path);
  if (stat !== undefined) return found(path, stat);
  const unmade = makeFolder(path, uid);
  const made = lookExactlyAt(path);
  if (made !== undefined) return found(path, made);
  return {
    path,
    identity: null,
    why: `it does not exist, and the broker cannot make it: ${unmade ?? "it was removed again"}`,
  };
}

function found(path: string, stat: BigIntStats): WritePlace {
  if (stat.isDirectory()) return { path, identity: `${stat.dev}:${stat.ino}`, why: null };
  const what = stat.isSymbolicLink() ? "it is a link: name its target folder" : "it is not a folder";
  return { path, identity: null, why: what };
}

/** Creates a folder below its opened parent, so that a replaced parent cannot redirect the creation. */
function makeFolder(path: string, uid: number): string | undefined {
  const parent = dirname(path);
  const opened = openFolder(parent);
  if (typeof opened === "string") return opened;
  try {
    const { uid: owner } = fstatSync(opened);
    if (owner !== uid) return `'${parent}' belongs to user ${owner}, and the broker runs as user ${uid}`;
    // mkdir(2) does not follow a link in the last component.
    mkdirSync(`/proc/self/fd/${opened}/${basename(path)}`);
    return undefined;
  } catch (error) {
    return `the kernel reports ${codeOf(error)}`;
  } finally {
    closeSync(opened);
  }
}

/** `O_PATH`, missing in Node: walking through a folder needs no read permission (asm-generic/fcntl.h). */
const O_PATH = 0o10000000;

/** Opens a folder without following links; returns a sentence on failure. */
function openFolder(path: string): number | string {
  const flags = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;
  let folder = openSync("/", flags);
  let at = "";
  for (const name of path.split("/").filter((part) => part !== "")) {
    at = `${at}/${name}`;
    try {
      const next = openSync(`/proc/self/fd/${folder}/${name}`, flags);
      closeSync(folder);
      folder = next;
    } catch (error) {
      closeSync(folder);
      return unopened(at, codeOf(error));
    }
  }
  return folder;
}

function unopened(path: string, code: string): string {
  if (code === "ENOENT")
    return `'${path}' does not exist either. Make it, then the next command can write there`;
  if (code === "ENOTDIR" || code === "ELOOP") return `'${path}' is a link or not a folder`;
  return `'${path}' cannot be entered (${code})`;
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}
