/** `substrate shim`: verbs, options and help. */
import type { Command } from "commander";
import type { ShimOptions } from "./commands/shim.ts";
import type { Action } from "./program-world.ts";

const JSON_FLAG = ["--json", "as JSON"] as const;

const INSTALL_HELP = `
A shim asks the broker, then becomes the program of the same name: same process, same descriptors, same exit code.
A command that the policy isolates runs in a world instead, as with 'substrate exec'; its changes are held.
It covers programs started by name through PATH outside worlds, but no program started by its full path.
SHIM_BYPASS=1 starts the program whatever the policy says; the trace records the bypass.`;

export function describeShim(program: Command, choose: (action: Action) => void): void {
  const shim = program
    .command("shim")
    .description("Manage shims: programs on PATH that ask the broker before they start");
  shim
    .command("install")
    .description("Create shims for programs (default: the usual ones that are installed)")
    .argument("[name...]", "programs")
    .option(...JSON_FLAG)
    .addHelpText("after", INSTALL_HELP)
    .action((names: readonly string[], options: ShimOptions) =>
      choose(async (at) => (await import("./commands/shim.ts")).installShims(at, names, options)),
    );
  shim
    .command("remove")
    .description("Remove shims (default: all of them)")
    .argument("[name...]", "programs")
    .option(...JSON_FLAG)
    .action((names: readonly string[], options: ShimOptions) =>
      choose(async (at) => (await import("./commands/shim.ts")).removeShims(at, names, options)),
    );
  shim
    .command("status")
    .description("List the shims, whether they are first on PATH, and the programs behind them")
    .argument("[name...]", "programs")
    .option(...JSON_FLAG)
    .action((names: readonly string[], options: ShimOptions) =>
      choose(async (at) => (await import("./commands/shim.ts")).shimStatus(at, names, options)),
    );
}
