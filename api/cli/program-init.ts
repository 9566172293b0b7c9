/** `substrate init`: options and help. */
import type { Command } from "commander";
import type { InitOptions } from "./commands/init.ts";
import type { Action } from "./program-world.ts";

const HELP = `
Agents: claude-code, codex, gemini, opencode, cursor, copilot and aider. Without one, lists what is installed and what is connected.
Shows the change of each settings file and asks before it writes; without a terminal, only --yes writes. Existing hooks, rules,
comments and layout stay. The agent gets its shipped policy in config.yaml. At the end two events go through the installed hook:
one must be denied, one allowed. Aider has no hooks: its commands get 'substrate-sh' for a shell, through which two commands go. Repeat the command to prove it again.`;

export function describeInit(program: Command, choose: (action: Action) => void): void {
  program
    .command("init")
    .description("Connect a coding agent, so that its commands are decided, isolated and recorded here")
    .argument("[agent]", "the agent to connect")
    .option("-y, --yes", "write the changes without asking")
    .option("--project", "change the settings of this folder's project instead of your own")
    .option(
      "--undo",
      "give the settings files back as they were; of files that changed since, only what init added is removed",
    )
    .option("--json", "as JSON")
    .addHelpText("after", HELP)
    .action((agent: string | undefined, options: InitOptions) =>
      choose(async (at) => (await import("./commands/init.ts")).initAgent(at, agent, options)),
    );
}
