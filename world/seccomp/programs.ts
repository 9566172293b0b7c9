import { assembleFilter, assembleGuard, assembleLogFilter } from "./assemble.ts";
import type { Architecture } from "./numbers.ts";
import { DENIED } from "./table.ts";

/** What a world loads: the filter of its commands and, in log mode, what init judges their notifications by. */
export type SeccompPrograms = { readonly filter: Uint8Array; readonly guard: Uint8Array | undefined };

export function seccompPrograms(
  architecture: Architecture,
): Readonly<Record<"enforce" | "log", SeccompPrograms>> {
  return {
    enforce: { filter: assembleFilter(DENIED, architecture), guard: undefined },
    log: { filter: assembleLogFilter(DENIED, architecture), guard: assembleGuard(DENIED, architecture) },
  };
}
