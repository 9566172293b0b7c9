/** `substrate held`, `diff`, `apply`, `discard` and `undo`: options and help. */
import type { Command } from "commander";
import type { ChangesOptions, DiffOptions } from "./commands/changes.ts";
import type { HeldOptions } from "./commands/held.ts";
import type { Action } from "./program-world.ts";

const SPAN = [
  "<span>",
  "the isolated command's: spn_…, or 'last' for the newest one of this project that held changes",
] as const;

const PATHS = [
  "[path...]",
  "as the diff shows them, relative to the project, or beginning with / or ./ from here; a folder stands for everything below it",
] as const;

const VERBS = [
  [
    "apply",
    "Put held changes into the project: all of them or none, and never over what changed there since",
  ],
  ["discard", "Drop held changes for good"],
  ["undo", "Take applied changes back, if nothing touched them since"],
] as const;

export function describeChanges(program: Command, choose: (action: Action) => void): void {
  program
    .command("diff")
    .description("What an isolated command changed and nobody sees yet, as a patch")
    .argument(...SPAN)
    .argument(...PATHS)
    .option("--stat", "a line for each path instead of the patch")
    .option("--json", "as JSON")
    .action((span: string, paths: string[], options: DiffOptions) =>
      choose(async (at) => (await import("./commands/changes.ts")).showDiff(at, span, paths, options)),
    );
  program
    .command("held")
    .description("Commands whose changes wait to be applied, in the project around this folder")
    .option("--all", "in every project")
    .option("--json", "as JSON")
    .action((options: HeldOptions) =>
      choose(async (at) => (await import("./commands/held.ts")).listHeld(at, options)),
    );
  for (const [verb, description] of VERBS)
    program
      .command(verb)
      .description(description)
      .argument(...SPAN)
      .argument(...PATHS)
      .option("--json", "as JSON")
      .action((span: string, paths: string[], options: ChangesOptions) =>
        choose(async (at) =>
          (await import("./commands/changes.ts")).changeHeld(at, verb, span, paths, options),
        ),
      );
}
