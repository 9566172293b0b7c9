import { lstatSync, realpathSync } from "node:fs";
import type { HostFacts, PathKind } from "../plan/mounts.ts";

/** Facts read from the host's file system at the moment of each question. */
export function hostFacts(userxattr: boolean): HostFacts {
  return { kind: kindOf, real: realPath, userxattr };
}

function kindOf(path: string): PathKind {
  const real = realPath(path);
  if (real === undefined) return "missing";
  if (real !== path) return "symlinked";
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return "missing";
  if (stat.isDirectory()) return "folder";
  return stat.isFile() ? "file" : "other";
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch {
    // Missing, a loop of links, or not ours to enter: in each case there is nothing that a mount could show.
    return undefined;
  }
}
