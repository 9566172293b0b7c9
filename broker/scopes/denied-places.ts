import { realpathSync } from "node:fs";
import { type Cover, coverOf, type FileScope } from "../../world/backend.ts";
import { lookAt } from "../model/host-paths.ts";

/** Real paths behind literal deny names: a world denies these too, so a grant must not promise them. */
export type DeniedPlaces = { readonly read: readonly string[]; readonly write: readonly string[] };

/** Resolves the deny lists on the host. */
export function deniedPlaces({ denyRead, denyWrite, seal }: FileScope): DeniedPlaces {
  return { read: denyRead.flatMap(leadsTo), write: [...denyWrite, ...seal].flatMap(leadsTo) };
}

/** Resolves a name without wildcards; empty for a missing path. */
export function leadsTo(pattern: string): readonly string[] {
  if (hasWildcard(pattern)) return [];
  const path = pattern.includes("\\") ? pattern.replace(/\\(.)/gs, "$1") : pattern;
  // Most names of the default list are missing, and an error of realpath costs ten times as much as lstat.
  if (lookAt(path) === undefined) return [];
  try {
    return [realpathSync.native(path)];
  } catch {
    // Missing or unreadable, ignoring which: no target.
    return [];
  }
}

export function hasWildcard(pattern: string): boolean {
  return /(?<!\\)[*?[{]/.test(pattern);
}

/** Parses a pattern for denying, so doubt means yes: `[…]`, which is matched only when the world is made, counts as `?`. */
export function denyingCover(pattern: string): Cover {
  return coverOf(pattern.includes("[") ? pattern.replace(/(?<!\\)\[[^\]]*\]/g, "?") : pattern);
}
