/** What differs between two trees, found by looking at all of both: the slow and plain way to what a listing must say. */
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { bytesOf, rawPath } from "../world/overlay/names.ts";
import { byPath, changeKind, contentDigest, type HashedChange } from "../world/overlay/tree-hash.ts";

type Modes = ReadonlyMap<string, number>;

/** The changes from `before` to `after`, by the bytes of their paths. */
export function treeChanges(before: string, after: string): readonly HashedChange[] {
  const [old, now] = [bytesOf(before), bytesOf(after)];
  const [olds, nows] = [modesBelow(old), modesBelow(now)];
  const paths = new Set([...olds.keys(), ...nows.keys()]);
  return [...paths]
    .flatMap((path) => {
      const same = (): boolean => contentOf(join(old, path)) === contentOf(join(now, path));
      const mode = nows.get(path);
      const kind = changeKind(olds.get(path), mode, same);
      if (kind === undefined) return [];
      return [{ path, kind, mode: mode ?? 0, content: mode === undefined ? "" : contentOf(join(now, path)) }];
    })
    .sort(byPath);
}

/** By path: found by going down folders only, since a name beyond a link that took a folder's place is none of the tree. */
function modesBelow(root: string): Modes {
  const modes = new Map<string, number>();
  const waiting = [""];
  for (let below = waiting.pop(); below !== undefined; below = waiting.pop()) {
    for (const name of readdirSync(rawPath(join(root, below)), { encoding: "latin1" })) {
      const path = join(below, name);
      const stat = lstatSync(rawPath(join(root, path)));
      modes.set(path, stat.mode);
      if (stat.isDirectory()) waiting.push(path);
    }
  }
  return modes;
}

function contentOf(path: string): string {
  const stat = lstatSync(rawPath(path));
  if (stat.isFile()) return contentDigest(readFileSync(rawPath(path)));
  return stat.isSymbolicLink() ? contentDigest(readlinkSync(rawPath(path), { encoding: "buffer" })) : "";
}
