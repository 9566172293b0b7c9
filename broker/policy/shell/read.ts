import { CommandCollector } from "./collect.ts";
import type { CommandAssignment, OpaqueSpot, ReadCommand } from "../words/command.ts";
import { literalWord } from "../words/read-word.ts";
import { refuseToRead, refuseToReadWords } from "../words/read-limits.ts";
import { collectScript } from "./read-script.ts";
import { mayMakeOptions, partOf } from "../words/unknown-options.ts";
import { createContext, Script } from "node:vm";

/**
 * Reads a command string as its shell would. Never throws; text that is too large, too deep or invalid gives an opaque spot and
 * `incomplete`.
 *
 * @param shell `sh` also adds the dash reading of text that bash reads differently (`[[`, `((`, `&>`, `$'`).
 */
export function readShell(text: string, shell: "sh" | "bash" = "sh"): ReadCommand {
  return collect("shell", text, text.length, (collector) =>
    collectScript(collector, {
      ...{ text, shell, depth: 0, moves: [], input: null, place: null, inside: [] },
      decides: true,
    }),
  );
}

/** Whether {@link readArgv} reads an argv of this length. */
export function isReadable(argv: readonly string[]): boolean {
  return refuseToReadWords(argv.join(" ")) === null;
}

/** Reads a program and its arguments, without a shell. Wrappers are unwrapped all the same. */
export function readArgv(argv: readonly string[]): ReadCommand {
  const text = argv.join(" ");
  return collect("argv", text, text.length, (collector) => {
    if (argv.length === 0) return;
    const words = argv.map(literalWord);
    collector.addCommand(
      {
        words,
        assignments: [],
        redirects: [],
        text,
        start: 0,
        end: text.length,
        depth: 0,
        decides: true,
        moves: [],
        inside: [],
      },
      { input: null, shell: "sh" },
    );
  });
}

/**
 * Returns the reading of a command with variables given by the caller: each part starts with the variables, and the commands in
 * the variables' values (`GIT_SSH_COMMAND`, `LD_PRELOAD`) are included.
 */
export function withVariables(read: ReadCommand, variables: Readonly<Record<string, string>>): ReadCommand {
  const given = Object.entries(variables).map(
    ([name, text]): CommandAssignment => ({ name, value: { kind: "literal", text, raw: text } }),
  );
  if (given.length === 0) return read;
  const fragments = read.fragments.map((fragment) => ({
    ...fragment,
    assignments: [...given, ...fragment.assignments],
  }));
  // The values may be secrets: only names are shown.
  const names = given.map(({ name }) => `${name}=…`).join(" ");
  const length = given.reduce((sum, { value }) => sum + value.raw.length, 0);
  const run = collect("argv", names, length, (collector) => {
    const nowhere = { start: 0, end: 0, depth: 0, moves: null, inside: [] };
    const command = { words: [], assignments: given, redirects: [], text: names, ...nowhere };
    collector.addCommand(command, { input: null, shell: "sh" });
  });
  return {
    ...read,
    fragments: [...fragments, ...run.fragments.slice(1)],
    opaque: [...read.opaque, ...run.opaque, ...doubtsAbout(read, variables)],
    incomplete: read.incomplete || run.incomplete,
  };
}

/** `bash "$x" STRING` with `x` given as `-c`. */
function doubtsAbout(read: ReadCommand, variables: Readonly<Record<string, string>>): OpaqueSpot[] {
  const { doubts = [] } = read;
  if (doubts.length === 0) return [];
  const loose = new Set<string>();
  for (const [name, value] of Object.entries(variables)) {
    if (mayMakeOptions(value)) loose.add(name);
    if (/[-+]/.test(value)) loose.add(partOf(name));
  }
  return doubts
    .filter(({ names }) => names.some((name) => loose.has(name)))
    .map(({ fragment, reason }) => ({ fragment, reason }));
}

function collect(
  form: ReadCommand["form"],
  text: string,
  length: number,
  read: (collector: CommandCollector) => void,
): ReadCommand {
  const refusal = form === "argv" ? refuseToReadWords(text) : refuseToRead(text);
  if (refusal !== null) return unread(new CommandCollector(collectScript), form, text, refusal);
  let collector = new CommandCollector(collectScript);
  try {
    const collected = readInTime(length, () => {
      collector = new CommandCollector(collectScript);
      read(collector);
      return collector.finish(form, text);
    });
    return (
      collected ?? unread(collector, form, text, `The command takes longer than ${MAX_READING_MS} ms to read`)
    );
  } catch (error) {
    // The parser recurses and overflows the stack on some texts. The commands collected so far stay, marked incomplete.
    if (!(error instanceof RangeError)) throw error;
    return unread(collector, form, text, "The command is nested too deeply to be read");
  }
}

function unread(
  collector: CommandCollector,
  form: ReadCommand["form"],
  text: string,
  why: string,
): ReadCommand {
  collector.addUnread(text, why);
  return collector.finish(form, text);
}

/**
 * Limit for a reading, in milliseconds of this process's CPU time. An ordinary script of 60 KB takes about 10, a script with 900
 * substitutions 240 before the code is compiled; text within `read-limits.ts` takes less, except unforeseen texts: for several
 * kinds of open quote the parser scans the rest of the text again, in time quadratic in the length.
 */
export const MAX_READING_MS = 500;
/** The limit in wall-clock milliseconds, for a busy machine. */
export const PATIENCE_MS = 4000;
/** Texts up to this many characters are read without a watchdog, which costs 0.07 ms: quadratic time is short at such lengths. */
export const UNWATCHED_LENGTH = 4096;

/** Share of {@link MAX_READING_MS} in CPU time from which a reading counts as slow; the rest allows for the watchdog's own error. */
const MOST_OF_IT = 0.8;

const ROOM = createContext({ act: () => undefined });
const CALL = new Script("act()");

/**
 * Runs `act` on this thread, and interrupts the call after {@link MAX_READING_MS}. Rethrows errors; `act` must not call this
 * function again. Wall-clock time cannot tell a slow text from a busy processor: after little CPU time, `act` runs a second time
 * from the beginning, for {@link PATIENCE_MS} at most.
 *
 * @param length Characters that `act` reads.
 * @returns The result of `act`; undefined if interrupted.
 */
export function readInTime<Result>(length: number, act: () => Result): Result | undefined {
  if (length <= UNWATCHED_LENGTH) return act();
  const before = process.cpuUsage();
  const first = watched(act, MAX_READING_MS);
  if (first !== undefined) return first.result;
  const { user, system } = process.cpuUsage(before);
  const wasSlow = user + system > MAX_READING_MS * MOST_OF_IT * 1000;
  return wasSlow ? undefined : watched(act, PATIENCE_MS)?.result;
}

function watched<Result>(act: () => Result, milliseconds: number): { readonly result: Result } | undefined {
  let ended: { readonly result: Result } | undefined;
  ROOM["act"] = (): void => {
    ended = { result: act() };
  };
  try {
    CALL.runInContext(ROOM, { timeout: milliseconds });
    return ended;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_SCRIPT_EXECUTION_TIMEOUT") return undefined;
    throw error;
  } finally {
    ROOM["act"] = () => undefined;
  }
}
