/**
 * Lists changes from an overlay's upper layer: the cost grows with the changes, not with the project. Only a difference between
 * old and new state counts: a file opened for writing, or touched, is unchanged. A removed folder counts as each of its names.
 */
import { opendirSync } from "node:fs";
import type { FsDiff } from "../../schemas/generated/types.ts";
import { MAX_HASHED } from "../model/fs-diff.ts";
import type { ChangeReader, Layer, LayerEnd } from "./change-reader.ts";
import { Listing } from "./listing.ts";
import { shownPath } from "./names.ts";

const NO_CHANGE: LayerEnd = { hash: null, full: false };

export async function overlayDiff(reader: ChangeReader, layer: Layer, signal: AbortSignal): Promise<FsDiff> {
  const listing = new Listing();
  let unread = 0;
  let firstUnread = "";
  // Most commands change nothing: one look at the upper folder saves a request to the reader.
  const { hash, full } = isEmpty(layer.upper)
    ? NO_CHANGE
    : await reader.read(layer, signal, ({ kind, path, after }) => {
        if (kind !== "unread") listing.add(kind, path, after);
        else if (++unread === 1) firstUnread = path;
      });
  const held = listing.count + unread > 0;
  const gaps = [
    ...(full ? ["there are too many changes to count"] : []),
    ...(unread > 0 ? [`${unread} paths cannot be read, the first is '${shownPath(firstUnread)}'`] : []),
    ...(hash === null && held
      ? [`no tree hash: the changes have more than ${MAX_HASHED} bytes, or some cannot be read`]
      : []),
  ];
  return { ...listing.diff(gaps), held, tree_hash: hash };
}

function isEmpty(folder: string): boolean {
  const names = opendirSync(folder);
  try {
    return names.readSync() === null;
  } finally {
    names.closeSync();
  }
}
