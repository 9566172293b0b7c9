/** `substrate budget`: verbs, options and help. */
import type { Command } from "commander";
import type { BudgetOptions } from "./commands/budget.ts";
import type { Action } from "./program-world.ts";

export function describeBudget(program: Command, choose: (action: Action) => void): void {
  const budget = program.command("budget").description("What agents have used up, and what they may use");
  budget
    .command("show")
    .description("Used and allowed, with the end of each window")
    .argument("[agent]", "an agent, or +shared for all labels together (default: everybody)")
    .option("--cwd <folder>", "with the limits that hold in this folder")
    .option("--json", "as JSON")
    .action((agent: string | undefined, options: BudgetOptions) =>
      choose(async (at) => (await import("./commands/budget.ts")).showBudget(at, agent, options)),
    );
  budget
    .command("reset")
    .description("Set what an agent used to nothing; the reset is recorded")
    .argument("<agent>", "an agent, or +shared for all labels together")
    .option("--json", "as JSON")
    .action((agent: string, options: BudgetOptions) =>
      choose(async (at) => (await import("./commands/budget.ts")).resetBudget(at, agent, options)),
    );
}
