import { assembleFilter, assembleGuard, assembleLogFilter, assembleShortFilter } from "./assemble.ts";
import { FILE_CALLS, type FileCall, NAMING_CALLS } from "./file-calls.ts";
import { LISTEN_CALLS, SOCKET_CALLS } from "./socket-calls.ts";
import { START_CALLS } from "./start-calls.ts";
import type { Architecture } from "./numbers.ts";
import {
  BESIDE_HOST,
  beyondOneUser,
  DENIED,
  deniedIn,
  dividedRows,
  type OneUser,
  type Openness,
  type SeccompRule,
} from "./table.ts";

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

/** The part of a world's surroundings that its filters depend on. */
export type SeccompGround = {
  /** The world has the host's network namespace. */
  readonly besideHost?: boolean;
  /** The world has a user namespace, which maps this user alone. */
  readonly oneUser?: OneUser | undefined;
};

type Ground = SeccompGround & {
  readonly architecture: Architecture;
  readonly withCgroup: boolean;
};

/** Returns the programs of a mode, assembled at their first use: most brokers use one mode, and one of three backends. */
export function seccompPrograms(
  architecture: Architecture,
): (mode: SeccompMode, ground?: SeccompGround) => SeccompChoice {
  const made = new Map<string, SeccompChoice>();
  return (mode, asked = {}) => {
    const key = JSON.stringify([mode, asked]);
    const known = made.get(key);
    if (known !== undefined) return known;
    const variants = (withCgroup: boolean): SeccompVariants => {
      const ground = { ...asked, architecture, withCgroup };
      return mode === "log" ? logging(ground) : enforcing(mode, ground);
    };
    const choice = { withoutCgroup: variants(false), withCgroup: variants(true) };
    made.set(key, choice);
    return choice;
  };
}

function toldIn({ besideHost }: Ground): readonly FileCall[] {
  return besideHost === true ? [...ALWAYS_TOLD, ...LISTEN_CALLS] : ALWAYS_TOLD;
}

function rowsIn(rows: readonly SeccompRule[], { besideHost }: Ground): readonly SeccompRule[] {
  return besideHost === true ? [...rows, ...BESIDE_HOST] : rows;
}

function enforcing(openness: Openness, ground: Ground): SeccompVariants {
  const { architecture, withCgroup } = ground;
  const mapped = openness === "closed" && ground.oneUser !== undefined ? beyondOneUser(ground.oneUser) : [];
  const { all, commands } = dividedRows(rowsIn([...deniedIn(openness), ...mapped], ground), withCgroup);
  const refused = commands.filter(({ reported }) => reported !== true);
  const always = [...commands.filter(({ reported }) => reported === true), ...toldIn(ground)];
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
function logging(ground: Ground): SeccompVariants {
  const { architecture, withCgroup } = ground;
  const rows = rowsIn(DENIED, ground);
  const commands = rows.filter(({ leaderNeeds }) => withCgroup && leaderNeeds === true);
  const all = rows.filter((row) => !commands.includes(row));
  const always = toldIn(ground);
  const plain: SeccompPrograms = {
    filter: assembleLogFilter(all, architecture, always),
    guard: assembleGuard(rows, architecture),
    commandFilter: short(commands, architecture),
    recordFilter: undefined,
  };
  const told = [...FILE_CALLS, ...always];
  return { plain, recording: { ...plain, filter: assembleLogFilter(all, architecture, told) } };
}

function short(rules: readonly SeccompRule[], architecture: Architecture): Uint8Array | undefined {
  return rules.length === 0 ? undefined : assembleShortFilter(rules, architecture);
}
