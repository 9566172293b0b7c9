import { assembleFilter, assembleGuard, assembleLogFilter, assembleShortFilter } from "./assemble.ts";
import type { Architecture } from "./numbers.ts";
import { DENIED, DENIED_TO_ALL, DENIED_TO_COMMANDS } from "./table.ts";

/**
 * What a world loads: the filter of all its processes, in log mode what init judges their notifications by, and the
 * filter that each command loads on top.
 */
export type SeccompPrograms = {
  readonly filter: Uint8Array;
  readonly guard: Uint8Array | undefined;
  readonly commandFilter: Uint8Array | undefined;
};

/** Commands are refused the same in both cases; where they have cgroups their leaders need some of it. */
export type SeccompChoice = { readonly withoutCgroup: SeccompPrograms; readonly withCgroup: SeccompPrograms };

export function seccompPrograms(
  architecture: Architecture,
): Readonly<Record<"enforce" | "log", SeccompChoice>> {
  const guard = assembleGuard(DENIED, architecture);
  const commandFilter = assembleShortFilter(DENIED_TO_COMMANDS, architecture);
  return {
    enforce: {
      withoutCgroup: {
        filter: assembleFilter(DENIED, architecture),
        guard: undefined,
        commandFilter: undefined,
      },
      withCgroup: { filter: assembleFilter(DENIED_TO_ALL, architecture), guard: undefined, commandFilter },
    },
    log: {
      withoutCgroup: { filter: assembleLogFilter(DENIED, architecture), guard, commandFilter: undefined },
      withCgroup: { filter: assembleLogFilter(DENIED_TO_ALL, architecture), guard, commandFilter },
    },
  };
}
