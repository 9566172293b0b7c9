import { realpathSync } from "node:fs";
import type { FileScope } from "../../world/backend.ts";

/** Real paths behind literal deny names: a world denies these too, so a grant must not promise them. */
export type DeniedPlaces = { readonly read: readonly string[]; readonly write: readonly string[] };

/** Resolves the deny lists on the host. */
export function deniedPlaces({ denyRead, denyWrite, seal }: FileScope): DeniedPlaces {
  return { read: denyRead.flatMap(leadsTo), write: [...denyWrite, ...seal].flatMap(leadsTo) };
}

/** Resolves a name without wildcards; empty for a missing path. */
export function leadsTo(pattern: string): readonly string[] {
  if (/(?<!\\)[*?[{]/.test(pattern)) return [];
  try {
    return [realpathSync.native(pattern.replace(/\\(.)/gs, "$1"))];
  } catch {
    // Missing or unreadable, ignoring which: no target.
    return [];
  }
}
