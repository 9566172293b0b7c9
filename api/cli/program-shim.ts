/** `substrate shim`: verbs, options and help. */
import type { Command } from "commander";
import type { ShimOptions } from "./commands/shim.ts";
import type { Action } from "./program-world.ts";

const JSON_FLAG = ["--json", "as JSON"] as const;

const INSTALL_HELP = `
A shim asks the broker and then becomes the program whose name it has: same process, same descriptors, same exit code.
It governs what is started by name through PATH, outside worlds, and nothing that is started by its full path.
SHIM_BYPASS=1 starts the program whatever the policy says, and that is recorded.`;

export function describeShim(program: Command, choose: (action: Action) => void): void {
  const shim = program.command("shim").description("Programs on PATH that ask before they start");
  shim
    .command("install")
    .description("Link names in the shims folder (default: the usual ones that are installed)")
    .argument("[name...]", "programs")
    .option(...JSON_FLAG)
    .addHelpText("after", INSTALL_HELP)
    .action((names: readonly string[], options: ShimOptions) =>
      choose(async (at) => (await import("./commands/shim.ts")).installShims(at, names, options)),
    );
  shim
    .command("remove")
    .description("Unlink names (default: all of them)")
    .argument("[name...]", "programs")
    .option(...JSON_FLAG)
    .action((names: readonly string[], options: ShimOptions) =>
      choose(async (at) => (await import("./commands/shim.ts")).removeShims(at, names, options)),
    );
  shim
    .command("status")
    .description("Which names are shims, whether they are first on PATH, and what is behind them")
    .argument("[name...]", "programs")
    .option(...JSON_FLAG)
    .action((names: readonly string[], options: ShimOptions) =>
      choose(async (at) => (await import("./commands/shim.ts")).shimStatus(at, names, options)),
    );
}
