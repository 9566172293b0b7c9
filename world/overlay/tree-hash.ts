/**
 * One hash over a list of changes, so that two runs can be compared whatever was listed of them. Equal changes hash
 * alike whenever and wherever they were made: kind, path, type, mode and content count; times, owners and the order in
 * which they were found do not. Whoever lists changes (an overlay's layer, notifications) hashes them here.
 */
import { hash } from "node:crypto";
import { constants } from "node:fs";

/** How a path differs from what it was: not there before, other than before, gone, or a folder that was none. */
export type ChangeKind = "write" | "mod" | "delete" | "dir";

/** A change as it counts. */
export type HashedChange = {
  /** Relative to the project, one letter for each byte (names.ts). */
  readonly path: string;
  readonly kind: ChangeKind;
  /** `st_mode` with its type; what is gone has none. */
  readonly mode: number;
  /** {@link contentDigest} of a file's bytes or of a link's target; "" of all else. */
  readonly content: string;
};

const TYPE = constants.S_IFMT;

/**
 * Which change it is, from `st_mode` before and after; undefined stands for nothing there. A folder below which something
 * changed is none. `isSame`: content that equals what was there, in a file of the same type.
 */
export function changeKind(
  before: number | undefined,
  after: number | undefined,
  isSame: () => boolean,
): ChangeKind | undefined {
  if (after === undefined) return before === undefined ? undefined : "delete";
  const isFolder = (after & TYPE) === constants.S_IFDIR;
  if (before === undefined) return isFolder ? "dir" : "write";
  if ((before & TYPE) !== (after & TYPE)) return isFolder ? "dir" : "mod";
  if (before !== after) return "mod";
  return isFolder || isSame() ? undefined : "mod";
}

/** Hex of the SHA-256 of a file's bytes, or of where a link leads. */
export function contentDigest(bytes: Uint8Array): string {
  return hash("sha256", bytes, "hex");
}

/** `sha256:` and hex; null when nothing changed. */
export function treeHash(changes: readonly HashedChange[]): string | null {
  if (changes.length === 0) return null;
  const lines = changes.toSorted(byPath).map(lineOf).join("");
  return `sha256:${hash("sha256", Buffer.from(lines, "latin1"), "hex")}`;
}

/** No path holds a NUL, and neither kind, mode nor digest holds a NUL or a newline: no two lists have the same lines. */
function lineOf({ path, kind, mode, content }: HashedChange): string {
  return `${kind}\0${path}\0${(kind === "delete" ? 0 : mode).toString(8)}\0${content}\n`;
}

/** By bytes, as every listing. */
export function byPath(one: { readonly path: string }, other: { readonly path: string }): number {
  return one.path < other.path ? -1 : Number(one.path > other.path);
}
