import { CommandCollector } from "./collect.ts";
import type { ReadCommand } from "./command.ts";
import { literalWord } from "./read-word.ts";
import { refuseToRead } from "./read-limits.ts";
import { collectScript } from "./read-script.ts";

/**
 * Reads a command string as the shell would that runs it. Never throws; text that is too large, too deep or no valid
 * shell comes back with an opaque spot and `incomplete`.
 *
 * @param shell `sh` also reads what dash would make of text that bash reads otherwise (`[[`, `((`, `&>`, `$'`).
 */
export function readShell(text: string, shell: "sh" | "bash" = "sh"): ReadCommand {
  return collect("shell", text, (collector) =>
    collectScript(collector, { text, shell, depth: 0, moves: [], input: null, place: null, inside: [] }),
  );
}

/** Reads a program and its arguments that no shell will see. Wrappers in it are unwrapped all the same. */
export function readArgv(argv: readonly string[]): ReadCommand {
  const text = argv.join(" ");
  return collect("argv", text, (collector) => {
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
        moves: [],
        inside: [],
      },
      { input: null, shell: "sh" },
    );
  });
}

function collect(
  form: ReadCommand["form"],
  text: string,
  read: (collector: CommandCollector) => void,
): ReadCommand {
  const collector = new CommandCollector(collectScript);
  const refusal = refuseToRead(text);
  if (refusal !== null) collector.addUnread(text, refusal);
  else {
    try {
      read(collector);
    } catch (error) {
      // The parser recurses: some texts end its stack. What was collected so far stays, and counts as incomplete.
      if (!(error instanceof RangeError)) throw error;
      collector.addUnread(text, "The command is nested too deeply to be read");
    }
  }
  return collector.finish(form, text);
}
