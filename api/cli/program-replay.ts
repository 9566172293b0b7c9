/** `substrate replay`: options and help. */
import type { Command } from "commander";
import type { ReplayOptions } from "./commands/replay.ts";
import type { Action } from "./program-world.ts";

export function describeReplay(program: Command, choose: (action: Action) => void): void {
  program
    .command("replay")
    .description("Run a recorded command once more in a world of its own, and compare; nothing of it stays")
    .argument("<span>", "the command's span: spn_…, as 'substrate trace list' shows it")
    .option("--policy <policy>", "under this policy instead of the one that holds: what would it change?")
    .option("--times <count>", "so many runs, compared with each other and with what is on record")
    .option(
      "--env <name=value>",
      "a variable that the span did not keep; may be given several times",
      gather,
      [],
    )
    .option("--stdin", "the input that the span did not keep, from standard input")
    .option("--json", "as JSON")
    .argument("[command...]", "the command itself, where the span keeps it with its secrets replaced, or cut")
    .usage("[options] <span> [-- COMMAND...]")
    .addHelpText(
      "after",
      "\nExit code 0: exit code, outputs and file changes are the same. 1: one is not, or could not be compared.\n" +
        "Drift lists what is not as it was when the command ran: policy, files, commit, environment, host.",
    )
    .action((span: string, words: readonly string[], options: ReplayOptions) =>
      choose(async (at) => (await import("./commands/replay.ts")).replaySpan(at, span, words, options)),
    );
}

function gather(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
}
