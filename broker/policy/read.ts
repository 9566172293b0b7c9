import { CommandCollector } from "./collect.ts";
import type { CommandAssignment, OpaqueSpot, ReadCommand } from "./command.ts";
import { literalWord } from "./read-word.ts";
import { refuseToRead, refuseToReadWords } from "./read-limits.ts";
import { collectScript } from "./read-script.ts";
import { MAX_READING_MS, readInTime } from "./read-time.ts";
import { mayMakeOptions } from "./unknown-options.ts";

/**
 * Reads a command string as the shell would that runs it. Never throws; text that is too large, too deep or no valid
 * shell comes back with an opaque spot and `incomplete`.
 *
 * @param shell `sh` also reads what dash would make of text that bash reads otherwise (`[[`, `((`, `&>`, `$'`).
 */
export function readShell(text: string, shell: "sh" | "bash" = "sh"): ReadCommand {
  return collect("shell", text, text.length, (collector) =>
    collectScript(collector, {
      ...{ text, shell, depth: 0, moves: [], input: null, place: null, inside: [] },
      decides: true,
    }),
  );
}

/** Whether {@link readArgv} looks at so many words at all. */
export function isReadable(argv: readonly string[]): boolean {
  return refuseToReadWords(argv.join(" ")) === null;
}

/** Reads a program and its arguments that no shell will see. Wrappers in it are unwrapped all the same. */
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
 * The command as it is read when the caller gives it these variables: each part of it starts with them, and what they
 * make programs run (`GIT_SSH_COMMAND`, `LD_PRELOAD`) is there too.
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
  // Their values may be secrets: only their names are shown.
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
  return (read.doubts ?? [])
    .filter(({ names }) => names.some((name) => mayMakeOptions(variables[name] ?? "")))
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
    // The parser recurses: some texts end its stack. What was collected so far stays, and counts as incomplete.
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
