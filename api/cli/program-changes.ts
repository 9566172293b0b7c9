/** `substrate held`, `diff`, `apply`, `discard` and `undo`: options and help. */
import type { Command } from "commander";
import type { ApplyOptions, DiffOptions } from "./commands/changes.ts";
import type { HeldOptions } from "./commands/held.ts";
import type { Action } from "./program-world.ts";

const SPAN = [
  "<span>",
  "the isolated command's span: spn_…, or 'last' for the newest in this project that held changes",
] as const;

const PATHS = [
  "[path...]",
  "relative to the project as the diff shows them, or absolute, or beginning with ./ from this folder; a folder includes everything below it",
] as const;

const VERBS = [
  [
    "apply",
    "Apply held changes to the project; if one of the paths changed there meanwhile, nothing is applied",
  ],
  ["discard", "Discard held changes; this cannot be undone"],
  ["undo", "Revert applied changes, unless something changed the files since"],
] as const;

export function describeChanges(program: Command, choose: (action: Action) => void): void {
  program
    .command("diff")
    .description("Show the held changes of an isolated command as a patch")
    .argument(...SPAN)
    .argument(...PATHS)
    .option("--stat", "one line per path instead of the patch")
    .option("--json", "as JSON")
    .action((span: string, paths: string[], options: DiffOptions) =>
      choose(async (at) => (await import("./commands/changes.ts")).showDiff(at, span, paths, options)),
    );
  program
    .command("held")
    .description("List commands whose changes wait to be applied, in the project of this folder")
    .option("--all", "in every project")
    .option("--json", "as JSON")
    .action((options: HeldOptions) =>
      choose(async (at) => (await import("./commands/held.ts")).listHeld(at, options)),
    );
  for (const [verb, description] of VERBS) {
    const command = program
      .command(verb)
      .description(description)
      .argument(...SPAN)
      .argument(...PATHS);
    if (verb === "apply")
      command.option("--skip-refused", "leave held what cannot be applied, and apply all others");
    command
      .option("--json", "as JSON")
      .action((span: string, paths: string[], options: ApplyOptions) =>
        choose(async (at) =>
          (await import("./commands/changes.ts")).changeHeld(at, verb, span, paths, options),
        ),
      );
  }
}
