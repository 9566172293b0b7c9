import { realpathSync } from "node:fs";
import type { FileScope } from "../../world/backend.ts";

/** Where the plain names of the deny lists lead: a world denies that too, so a grant must not promise it. */
export type DeniedPlaces = { readonly read: readonly string[]; readonly write: readonly string[] };

/** Looks at the host. */
export function deniedPlaces({ denyRead, denyWrite, seal }: FileScope): DeniedPlaces {
  return { read: denyRead.flatMap(leadsTo), write: [...denyWrite, ...seal].flatMap(leadsTo) };
}

/** Where a name without wildcards leads now; nowhere when it is missing. */
export function leadsTo(pattern: string): readonly string[] {
  if (/(?<!\\)[*?[{]/.test(pattern)) return [];
  try {
    return [realpathSync.native(pattern.replace(/\\(.)/gs, "$1"))];
  } catch {
    // Missing, or not ours to enter, ignoring which: it leads nowhere.
    return [];
  }
}
