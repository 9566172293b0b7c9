/**
 * What changed, read from an overlay's upper layer: its cost grows with the changes and not with the project.
 * In the upper layer a character device 0:0 is a whiteout (something below was deleted); everything else was
 * written there, or copied up because it was modified (kernel: Documentation/filesystems/overlayfs.rst).
 */
import { createHash } from "node:crypto";
import type { Stats } from "node:fs";
import { lstat, open, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import type { FsDiff } from "../../schemas/generated/types.ts";
import { isAutorun } from "./autorun.ts";

/** Bounds of a listed diff (source document: 1,000 files and 100 folders, then a summary and a tree hash). */
const MAX_FILES = 1000;
const MAX_FOLDERS = 100;

type Change = {
  readonly path: string;
  readonly kind: "write" | "mod" | "delete" | "dir";
  readonly stat: Stats;
};

export async function overlayDiff(layers: string, project: string): Promise<FsDiff> {
  const changes: Change[] = [];
  for await (const change of walk(join(layers, "upper"), project, "")) changes.push(change);
  changes.sort(byPath);
  const files = changes.filter((change) => change.kind !== "dir");
  const folders = changes.filter((change) => change.kind === "dir");
  const truncated = files.length > MAX_FILES || folders.length > MAX_FOLDERS;
  const listed = files.slice(0, MAX_FILES);
  return {
    writes: pathsOf(listed, "write"),
    mods: pathsOf(listed, "mod"),
    deletes: pathsOf(listed, "delete"),
    dirs: pathsOf(folders.slice(0, MAX_FOLDERS), "dir"),
    autorun: files
      .map((change) => change.path)
      .filter(isAutorun)
      .slice(0, MAX_FILES),
    world_only: [],
    held: changes.length > 0,
    truncated,
    summary: truncated
      ? `${files.length} files and ${folders.length} folders changed; the first ${MAX_FILES} files and ${MAX_FOLDERS} folders are listed`
      : null,
    tree_hash: changes.length === 0 ? null : await treeHash(join(layers, "upper"), changes),
  };
}

async function* walk(upper: string, project: string, below: string): AsyncGenerator<Change> {
  for (const name of await readdir(join(upper, below))) {
    const path = join(below, name);
    const stat = await lstat(join(upper, path));
    const original = await lstat(join(project, path)).catch(() => undefined);
    if (!stat.isDirectory()) {
      yield { path, kind: isWhiteout(stat) ? "delete" : original === undefined ? "write" : "mod", stat };
      continue;
    }
    // A folder that stands below as a folder was only copied up on the way to what changed inside it.
    if (original?.isDirectory() !== true) yield { path, kind: "dir", stat };
    yield* walk(upper, project, path);
  }
}

/** Equal changes hash alike whenever they were made: kind, path, mode and content count, times do not. */
async function treeHash(upper: string, changes: readonly Change[]): Promise<string> {
  const tree = createHash("sha256");
  for (const change of changes) {
    tree.update(
      `${change.kind}\0${change.path}\0${change.stat.mode.toString(8)}\0${await contentHash(join(upper, change.path), change.stat)}\n`,
    );
  }
  return `sha256:${tree.digest("hex")}`;
}

async function contentHash(path: string, stat: Stats): Promise<string> {
  if (stat.isSymbolicLink()) return await readlink(path);
  if (!stat.isFile()) return "";
  const hash = createHash("sha256");
  const file = await open(path, "r");
  try {
    for await (const chunk of file.createReadStream({ autoClose: false })) hash.update(chunk as Buffer);
  } finally {
    await file.close();
  }
  return hash.digest("hex");
}

function isWhiteout(stat: Stats): boolean {
  return stat.isCharacterDevice() && stat.rdev === 0;
}

function pathsOf(changes: readonly Change[], kind: Change["kind"]): string[] {
  return changes.filter((change) => change.kind === kind).map((change) => change.path);
}

function byPath(a: Change, b: Change): number {
  return a.path < b.path ? -1 : 1;
}
