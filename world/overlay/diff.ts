/**
 * Lists changes from an overlay's upper layer: the cost grows with the changes, not with the project. Only a difference between
 * old and new state counts: a file opened for writing, or touched, is unchanged. A removed folder counts as each of its names.
 */
import { opendirSync } from "node:fs";
import type { FsDiff } from "../../schemas/generated/types.ts";
import { beyondBounds, MAX_FILES, MAX_FOLDERS, MAX_HASHED } from "../model/fs-diff.ts";
import { isAutorun } from "./autorun.ts";
import type { ChangeReader, Layer } from "./change-reader.ts";
import type { LayerChange, LayerEnd } from "./change-records.ts";
import { shownPath } from "./names.ts";

/** The bounded part of a listing. */
type Listed = {
  readonly files: LayerChange[];
  readonly folders: string[];
  readonly autorun: string[];
  fileCount: number;
  folderCount: number;
  unread: number;
  firstUnread: string;
};

const NO_CHANGE: LayerEnd = { hash: null, full: false };

export async function overlayDiff(reader: ChangeReader, layer: Layer, signal: AbortSignal): Promise<FsDiff> {
  const listed: Listed = {
    files: [],
    folders: [],
    autorun: [],
    fileCount: 0,
    folderCount: 0,
    unread: 0,
    firstUnread: "",
  };
  // Most commands change nothing: one look at the upper folder saves a request to the reader.
  const end = isEmpty(layer.upper)
    ? NO_CHANGE
    : await reader.read(layer, signal, (change) => take(listed, change));
  const { files, folders, autorun, fileCount, folderCount, unread } = listed;
  const gaps = gapsOf(listed, end);
  return {
    writes: pathsOf(files, "write"),
    mods: pathsOf(files, "mod"),
    deletes: pathsOf(files, "delete"),
    dirs: folders.map(shownPath),
    autorun: autorun.map(shownPath),
    world_only: [],
    outside: [],
    held: fileCount + folderCount + unread > 0,
    truncated: gaps.length > 0,
    summary: gaps.length === 0 ? null : gaps.join("; "),
    tree_hash: end.hash,
  };
}

function isEmpty(folder: string): boolean {
  const names = opendirSync(folder);
  try {
    return names.readSync() === null;
  } finally {
    names.closeSync();
  }
}

function take(listed: Listed, change: LayerChange): void {
  if (change.kind === "unread") {
    listed.unread += 1;
    if (listed.unread === 1) listed.firstUnread = change.path;
  } else if (change.kind === "dir") {
    listed.folderCount += 1;
    if (listed.folders.length < MAX_FOLDERS) listed.folders.push(change.path);
  } else {
    listed.fileCount += 1;
    if (listed.files.length < MAX_FILES) listed.files.push(change);
    // Check every path, even beyond the bounds: autorun files must not hide behind a thousand other changes.
    if (listed.autorun.length < MAX_FILES && isAutorun(change.path, change.after))
      listed.autorun.push(change.path);
  }
}

/** Describes everything left out of the listing. */
function gapsOf({ fileCount, folderCount, unread, firstUnread }: Listed, end: LayerEnd): readonly string[] {
  const unhashed = end.hash === null && fileCount + folderCount + unread > 0;
  return [
    ...beyondBounds(fileCount, folderCount),
    ...(end.full ? ["there are too many changes to count"] : []),
    ...(unread > 0 ? [`${unread} paths cannot be read, the first is '${shownPath(firstUnread)}'`] : []),
    ...(unhashed
      ? [`no tree hash: the changes have more than ${MAX_HASHED} bytes, or some cannot be read`]
      : []),
  ];
}

function pathsOf(changes: readonly LayerChange[], kind: LayerChange["kind"]): string[] {
  return changes.filter((change) => change.kind === kind).map((change) => shownPath(change.path));
}
