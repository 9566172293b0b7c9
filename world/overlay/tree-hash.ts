/**
 * Hashes a list of changes, so that two runs can be compared beyond the bounds of their listings. Kind, path, type, mode and
 * content count; times, owners and order do not. All listings of changes (an overlay's layer, notifications) use this hash.
 */
import { hash } from "node:crypto";
import { constants } from "node:fs";

/** How a path differs from before: new, changed, gone, or a new folder. */
export type ChangeKind = "write" | "mod" | "delete" | "dir";

/** A change with the properties that count. */
export type HashedChange = {
  /** Relative to the project, one letter per byte (names.ts). */
  readonly path: string;
  readonly kind: ChangeKind;
  /** `st_mode` with its type; unused for a deletion. */
  readonly mode: number;
  /** {@link contentDigest} of a file's bytes or of a link's target; "" for other types. */
  readonly content: string;
};

const TYPE = constants.S_IFMT;

/**
 * Returns the kind of a change from `st_mode` before and after; undefined means missing. A folder with changes below is
 * unchanged. `isSame`: whether the content of two files of the same type is equal.
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

/** Returns the SHA-256, in hex, of a file's bytes or a link's target. */
export function contentDigest(bytes: Uint8Array): string {
  return hash("sha256", bytes, "hex");
}

/** Returns `sha256:` and hex; null for an empty list. */
export function treeHash(changes: readonly HashedChange[]): string | null {
  if (changes.length === 0) return null;
  const lines = changes.toSorted(byPath).map(lineOf).join("");
  return `sha256:${hash("sha256", Buffer.from(lines, "latin1"), "hex")}`;
}

/** Unambiguous: paths contain no NUL, and kind, mode and digest contain neither NUL nor newline. */
function lineOf({ path, kind, mode, content }: HashedChange): string {
  return `${kind}\0${path}\0${(kind === "delete" ? 0 : mode).toString(8)}\0${content}\n`;
}

/** Compares by bytes, like every listing. */
export function byPath(one: { readonly path: string }, other: { readonly path: string }): number {
  return one.path < other.path ? -1 : Number(one.path > other.path);
}
