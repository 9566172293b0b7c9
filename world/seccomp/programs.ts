import { assembleFilter, assembleGuard, assembleLogFilter, assembleShortFilter } from "./assemble.ts";
import { FILE_CALLS, NAMING_CALLS } from "./file-calls.ts";
import { SOCKET_CALLS } from "./socket-calls.ts";
import { START_CALLS } from "./start-calls.ts";
import type { Architecture } from "./numbers.ts";
import { DENIED, DENIED_TO_ALL, DENIED_TO_COMMANDS, type SeccompRule } from "./table.ts";

/**
 * Filters of a world: the filter of all its processes, the guard that decides notifications in log mode, and the filter that each
 * command loads on top.
 */
export type SeccompPrograms = {
  readonly filter: Uint8Array;
  /** Log mode: `filter` notifies init of calls refused by default, and the guard selects the calls to refuse all the same. */
  readonly guard: Uint8Array | undefined;
  /** Denies calls that the command's leader still needs. */
  readonly commandFilter: Uint8Array | undefined;
  /** Replaces `commandFilter` where the kernel gives each command a listener. */
  readonly recordFilter: Uint8Array | undefined;
};

/** `recording` also notifies of calls that change files; both variants refuse the same calls. */
export type SeccompVariants = { readonly plain: SeccompPrograms; readonly recording: SeccompPrograms };

/** Both refuse commands the same calls; with cgroups, the leaders need some of those. */
export type SeccompChoice = { readonly withoutCgroup: SeccompVariants; readonly withCgroup: SeccompVariants };

/** Calls notified for every command. */
const ALWAYS_TOLD = [...START_CALLS, ...SOCKET_CALLS];

/** Assembles each mode's programs at their first use: most brokers use one mode, and one of three backends. */
export function seccompPrograms(
  architecture: Architecture,
): Readonly<Record<"enforce" | "log", SeccompChoice>> {
  let enforce: SeccompChoice | undefined;
  let log: SeccompChoice | undefined;
  return {
    get enforce() {
      enforce ??= {
        withoutCgroup: enforcing(DENIED, [], architecture),
        withCgroup: enforcing(DENIED_TO_ALL, DENIED_TO_COMMANDS, architecture),
      };
      return enforce;
    },
    get log() {
      log ??= {
        withoutCgroup: logging(DENIED, [], architecture),
        withCgroup: logging(DENIED_TO_ALL, DENIED_TO_COMMANDS, architecture),
      };
      return log;
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

/** A task has at most one listener, in log mode that of the long filter, so the notified calls are added there. */
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
