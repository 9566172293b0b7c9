/** `substrate replay`: options and help. */
import type { Command } from "commander";
import type { ReplayOptions } from "./commands/replay.ts";
import type { Action } from "./program-world.ts";

export function describeReplay(program: Command, choose: (action: Action) => void): void {
  program
    .command("replay")
    .description(
      "Run a recorded command again in a world of its own and compare the results; its changes are dropped",
    )
    .argument(
      "<span>",
      "the command's span: spn_…, as 'substrate trace list' shows it, or 'last' for the newest in this folder",
    )
    .option(
      "--policy <policy>",
      "run under this policy instead of the one in force, to see what that would change",
    )
    .option(
      "--times <count>",
      "run this many times, and compare the runs with each other and with the record",
    )
    .option("--env <name=value>", "value of a variable that the span did not keep. Repeatable", gather)
    .option("--stdin", "read the command's input, where the span did not keep it, from standard input")
    .option("--json", "as JSON")
    .argument("[command...]", "the original command, where the span has it cut or with secrets replaced")
    .usage("[options] <span> [-- COMMAND...]")
    .addHelpText(
      "after",
      "\nExit code 0: exit code, outputs and file changes are the same. 1: one of them differs or could not be compared.\n" +
        "'drift' lists what has changed since the command ran: policy, files, commit, environment, host.",
    )
    .action((span: string, words: readonly string[], options: ReplayOptions) =>
      choose(async (at) => (await import("./commands/replay.ts")).replaySpan(at, span, words, options)),
    );
}

function gather(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}
