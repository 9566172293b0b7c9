/** `substrate budget`: verbs, options and help. */
import type { Command } from "commander";
import type { BudgetOptions } from "./commands/budget.ts";
import type { Action } from "./program-world.ts";

export function describeBudget(program: Command, choose: (action: Action) => void): void {
  const budget = program.command("budget").description("Show or reset what agents have used of their limits");
  budget
    .command("show")
    .description("Show used and allowed amounts, and when each window ends")
    .argument("[agent]", "an agent, or +shared for all labels together (default: all agents)")
    .option("--cwd <folder>", "show the limits that apply in this folder")
    .option("--json", "as JSON")
    .action((agent: string | undefined, options: BudgetOptions) =>
      choose(async (at) => (await import("./commands/budget.ts")).showBudget(at, agent, options)),
    );
  budget
    .command("reset")
    .description("Set an agent's used amounts to zero; the trace records the reset")
    .argument("<agent>", "an agent, or +shared for all labels together")
    .option("--json", "as JSON")
    .action((agent: string, options: BudgetOptions) =>
      choose(async (at) => (await import("./commands/budget.ts")).resetBudget(at, agent, options)),
    );
}
