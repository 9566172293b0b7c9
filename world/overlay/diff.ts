/**
 * What changed, read from an overlay's upper layer: its cost grows with the changes and not with the project.
 * In the upper layer a character device 0:0 is a whiteout (something below was deleted); everything else was
 * written there, or copied up because it was modified (kernel: Documentation/filesystems/overlayfs.rst).
 */
import { createHash } from "node:crypto";
import { constants, type Stats } from "node:fs";
import { lstat, open, readlink } from "node:fs/promises";
import { join } from "node:path";
import type { FsDiff } from "../../schemas/generated/types.ts";
import { isAutorun } from "./autorun.ts";
import { bytesOf, namesBelow, rawPath, shownPath } from "./names.ts";

/** Bounds of a listed diff (source document: 1,000 files and 100 folders, then a summary and a tree hash). */
const MAX_FILES = 1000;
const MAX_FOLDERS = 100;

/** Bytes that are hashed at most: a second or so of one processor, after the command has ended. */
const MAX_HASHED = 512 * 1024 * 1024;

type Change = {
  /** One letter for each byte (names.ts). */
  readonly path: string;
  readonly kind: "write" | "mod" | "delete" | "dir";
  readonly stat: Stats;
};

export async function overlayDiff(layers: string, project: string, signal: AbortSignal): Promise<FsDiff> {
  const upper = bytesOf(join(layers, "upper"));
  const unreadable: string[] = [];
  const changes: Change[] = [];
  for await (const change of walk(upper, bytesOf(project), "", unreadable)) {
    signal.throwIfAborted();
    changes.push(change);
  }
  changes.sort(byPath);
  const files = changes.filter((change) => change.kind !== "dir");
  const folders = changes.filter((change) => change.kind === "dir");
  const listed = files.slice(0, MAX_FILES);
  const hash = await treeHash(upper, changes, unreadable, signal);
  const gaps = gapsOf(files.length, folders.length, unreadable, changes.length > 0 && hash === null);
  return {
    writes: pathsOf(listed, "write"),
    mods: pathsOf(listed, "mod"),
    deletes: pathsOf(listed, "delete"),
    dirs: pathsOf(folders.slice(0, MAX_FOLDERS), "dir"),
    autorun: pathsOf(files).filter(isAutorun).slice(0, MAX_FILES),
    world_only: [],
    held: changes.length + unreadable.length > 0,
    truncated: gaps.length > 0,
    summary: gaps.length === 0 ? null : gaps.join("; "),
    tree_hash: hash,
  };
}

/** What the listing leaves out, in words. */
function gapsOf(
  files: number,
  folders: number,
  unreadable: readonly string[],
  unhashed: boolean,
): readonly string[] {
  const long = files > MAX_FILES || folders > MAX_FOLDERS;
  return [
    ...(long
      ? [
          `${files} files and ${folders} folders changed; the first ${MAX_FILES} files and ${MAX_FOLDERS} folders are listed`,
        ]
      : []),
    ...(unreadable.length > 0
      ? [`${unreadable.length} paths cannot be read, the first is '${shownPath(unreadable[0] ?? "")}'`]
      : []),
    ...(unhashed
      ? [`no tree hash: the changes hold more than ${MAX_HASHED} bytes, or some that cannot be read`]
      : []),
  ];
}

async function* walk(
  upper: string,
  project: string,
  below: string,
  unreadable: string[],
): AsyncGenerator<Change> {
  const names = await namesBelow(join(upper, below)).catch(() => {
    unreadable.push(below);
    return [];
  });
  for (const name of names) {
    const path = join(below, name);
    // It lies deeper than a path can be long (4,096 bytes): it is held, and said to be unread.
    const stat = await lstat(rawPath(join(upper, path))).catch(() => undefined);
    if (stat === undefined) {
      unreadable.push(path);
      continue;
    }
    const original = await lstat(rawPath(join(project, path))).catch(() => undefined);
    if (!stat.isDirectory()) {
      yield { path, kind: isWhiteout(stat) ? "delete" : original === undefined ? "write" : "mod", stat };
      continue;
    }
    // A folder that stands below as a folder was only copied up on the way to what changed inside it.
    if (original?.isDirectory() !== true) yield { path, kind: "dir", stat };
    yield* walk(upper, project, path, unreadable);
  }
}

/**
 * Equal changes hash alike whenever they were made: kind, path, mode and content count, times do not. Null when there is
 * nothing to hash, too much of it (a sparse file has any size for nothing), or something that cannot be read.
 */
async function treeHash(
  upper: string,
  changes: readonly Change[],
  unreadable: string[],
  signal: AbortSignal,
): Promise<string | null> {
  const bytes = changes.reduce((sum, { stat }) => sum + (stat.isFile() ? stat.size : 0), 0);
  if (changes.length === 0 || bytes > MAX_HASHED) return null;
  const tree = createHash("sha256");
  for (const { kind, path, stat } of changes) {
    signal.throwIfAborted();
    const content = await contentHash(join(upper, path), stat).catch(() => undefined);
    if (content === undefined) unreadable.push(path);
    tree
      .update(`${kind}\0`)
      .update(path, "latin1")
      .update(`\0${stat.mode.toString(8)}\0${content}\n`);
  }
  return unreadable.length > 0 ? null : `sha256:${tree.digest("hex")}`;
}

/** Never through a link and never waiting for a pipe that took the file's place: the name may be swapped meanwhile. */
async function contentHash(path: string, stat: Stats): Promise<string> {
  if (stat.isSymbolicLink()) return await readlink(rawPath(path));
  if (!stat.isFile()) return "";
  const hash = createHash("sha256");
  const file = await open(rawPath(path), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    for await (const chunk of file.createReadStream({ autoClose: false, end: MAX_HASHED }))
      hash.update(chunk as Buffer);
  } finally {
    await file.close();
  }
  return hash.digest("hex");
}

function isWhiteout(stat: Stats): boolean {
  return stat.isCharacterDevice() && stat.rdev === 0;
}

function pathsOf(changes: readonly Change[], kind?: Change["kind"]): string[] {
  return changes
    .filter((change) => kind === undefined || change.kind === kind)
    .map((change) => shownPath(change.path));
}

function byPath(a: Change, b: Change): number {
  return a.path < b.path ? -1 : 1;
}
