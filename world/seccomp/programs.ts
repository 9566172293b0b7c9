import { assembleFilter, assembleGuard, assembleLogFilter, assembleShortFilter } from "./assemble.ts";
import { FILE_CALLS, NAMING_CALLS } from "./file-calls.ts";
import { SOCKET_CALLS } from "./socket-calls.ts";
import { START_CALLS } from "./start-calls.ts";
import type { Architecture } from "./numbers.ts";
import { DENIED, deniedIn, dividedRows, type Openness, type SeccompRule } from "./table.ts";

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

/** `log`, or how far a world that enforces is open. */
export type SeccompMode = Openness | "log";

/** Calls notified for every command. */
const ALWAYS_TOLD = [...START_CALLS, ...SOCKET_CALLS];

/** Returns the programs of a mode, assembled at their first use: most brokers use one mode, and one of three backends. */
export function seccompPrograms(architecture: Architecture): (mode: SeccompMode) => SeccompChoice {
  const made = new Map<SeccompMode, SeccompChoice>();
  return (mode) => {
    const known = made.get(mode);
    if (known !== undefined) return known;
    const choice =
      mode === "log"
        ? { withoutCgroup: logging(false, architecture), withCgroup: logging(true, architecture) }
        : {
            withoutCgroup: enforcing(mode, false, architecture),
            withCgroup: enforcing(mode, true, architecture),
          };
    made.set(mode, choice);
    return choice;
  };
}

function enforcing(openness: Openness, withCgroup: boolean, architecture: Architecture): SeccompVariants {
  const { all, commands } = dividedRows(deniedIn(openness), withCgroup);
  const refused = commands.filter(({ reported }) => reported !== true);
  const always = [...commands.filter(({ reported }) => reported === true), ...ALWAYS_TOLD];
  const plain: SeccompPrograms = {
    filter: assembleFilter(all, architecture),
    guard: undefined,
    commandFilter: short(commands, architecture),
    recordFilter: assembleShortFilter(refused, architecture, always),
  };
  const told = [...FILE_CALLS, ...NAMING_CALLS, ...always];
  return { plain, recording: { ...plain, recordFilter: assembleShortFilter(refused, architecture, told) } };
}

/** A task has at most one listener, in log mode that of the long filter, so the notified calls are added there. */
function logging(withCgroup: boolean, architecture: Architecture): SeccompVariants {
  const commands = DENIED.filter(({ leaderNeeds }) => withCgroup && leaderNeeds === true);
  const all = DENIED.filter((row) => !commands.includes(row));
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
