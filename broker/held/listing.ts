/** Held changes as the `fs_diff` of a span. Pure. */
import type { FsDiff } from "../../schemas/generated/types.ts";
import { beyondBounds, type HeldChange, MAX_FILES, MAX_FOLDERS, NO_CHANGES } from "../../world/backend.ts";

/** What was done, of all that was held; `held`: something is still. */
export function listingOf(all: readonly HeldChange[], done: readonly string[], held: boolean): FsDiff {
  const wanted = new Set(done);
  const changes = all.filter(({ path }) => wanted.has(path));
  const files = changes.filter(({ kind }) => kind !== "dir");
  const folders = changes.filter(({ kind }) => kind === "dir");
  const listed = files.slice(0, MAX_FILES);
  const gaps = beyondBounds(files.length, folders.length);
  const pathsOf = (kinds: readonly HeldChange["kind"][]): string[] =>
    listed.filter(({ kind }) => kinds.includes(kind)).map(shown);
  return {
    ...NO_CHANGES,
    writes: pathsOf(["write", "link"]),
    mods: pathsOf(["mod", "mode"]),
    deletes: pathsOf(["delete"]),
    dirs: folders.slice(0, MAX_FOLDERS).map(shown),
    autorun: files
      .filter(({ autorun }) => autorun)
      .slice(0, MAX_FILES)
      .map(shown),
    held,
    truncated: gaps.length > 0,
    summary: gaps[0] ?? null,
  };
}

/** As the fs_diff of the command itself has them. */
function shown({ path }: HeldChange): string {
  return Buffer.from(path, "latin1").toString("utf8");
}
