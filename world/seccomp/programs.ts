import { assembleFilter, assembleGuard, assembleLogFilter, assembleShortFilter } from "./assemble.ts";
import { FILE_CALLS, NAMING_CALLS } from "./file-calls.ts";
import { SOCKET_CALLS } from "./socket-calls.ts";
import { START_CALLS } from "./start-calls.ts";
import type { Architecture } from "./numbers.ts";
import { DENIED, DENIED_TO_ALL, DENIED_TO_COMMANDS, type SeccompRule } from "./table.ts";

/**
 * What a world loads: the filter of all its processes, in log mode what init judges their notifications by, and the
 * filter that each command loads on top.
 */
export type SeccompPrograms = {
  readonly filter: Uint8Array;
  /** For log mode: `filter` asks init about what it would refuse, and this says what stays refused. */
  readonly guard: Uint8Array | undefined;
  /** What it denies its leader still needs. */
  readonly commandFilter: Uint8Array | undefined;
  /** Instead of `commandFilter` where the kernel gives each command a listener. */
  readonly recordFilter: Uint8Array | undefined;
};

/** With calls that change files told to a listener as well as those that start programs, or not: the same is refused. */
export type SeccompVariants = { readonly plain: SeccompPrograms; readonly recording: SeccompPrograms };

/** Commands are refused the same in both cases; where they have cgroups their leaders need some of it. */
export type SeccompChoice = { readonly withoutCgroup: SeccompVariants; readonly withCgroup: SeccompVariants };

/** What every command's listener is asked about. */
const ALWAYS_TOLD = [...START_CALLS, ...SOCKET_CALLS];

export function seccompPrograms(
  architecture: Architecture,
): Readonly<Record<"enforce" | "log", SeccompChoice>> {
  return {
    enforce: {
      withoutCgroup: enforcing(DENIED, [], architecture),
      withCgroup: enforcing(DENIED_TO_ALL, DENIED_TO_COMMANDS, architecture),
    },
    log: {
      withoutCgroup: logging(DENIED, [], architecture),
      withCgroup: logging(DENIED_TO_ALL, DENIED_TO_COMMANDS, architecture),
    },
  };
}

function enforcing(
  all: readonly SeccompRule[],
  commands: readonly SeccompRule[],
  architecture: Architecture,
): SeccompVariants {
  const plain: SeccompPrograms = {
    filter: assembleFilter(all, architecture),
    guard: undefined,
    commandFilter: short(commands, architecture),
    recordFilter: assembleShortFilter(commands, architecture, ALWAYS_TOLD),
  };
  const told = [...FILE_CALLS, ...NAMING_CALLS, ...ALWAYS_TOLD];
  return { plain, recording: { ...plain, recordFilter: assembleShortFilter(commands, architecture, told) } };
}

/** A task has one listener at most, and here the long filter has it: the calls are added there. */
function logging(
  all: readonly SeccompRule[],
  commands: readonly SeccompRule[],
  architecture: Architecture,
): SeccompVariants {
  const plain: SeccompPrograms = {
    filter: assembleLogFilter(all, architecture, ALWAYS_TOLD),
    guard: assembleGuard(DENIED, architecture),
    commandFilter: short(commands, architecture),
    recordFilter: undefined,
  };
  const told = [...FILE_CALLS, ...ALWAYS_TOLD];
  return { plain, recording: { ...plain, filter: assembleLogFilter(all, architecture, told) } };
}

function short(rules: readonly SeccompRule[], architecture: Architecture): Uint8Array | undefined {
  return rules.length === 0 ? undefined : assembleShortFilter(rules, architecture);
}
