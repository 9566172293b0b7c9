/** `substrate mcp`: what agents' settings name. */
import type { Command } from "commander";
import type { Action } from "./program-world.ts";

export function describeMcp(program: Command, choose: (action: Action) => void): void {
  program
    .command("mcp")
    .description(
      "Serve commands and files of a project to an agent, as an MCP server on standard input and output",
    )
    .option("--agent <id>", "agent that the calls belong to (default: mcp)")
    .option("--profile <policy>", "a policy that narrows the assigned one (default: SUBSTRATE_PROFILE)")
    .option("--cwd <folder>", "the project (default: the client's first root, else this folder)")
    .option("--wait <duration>", "how long a call waits for a person's answer", "50s")
    .addHelpText("after", HELP)
    .action((options: { agent?: string; profile?: string; cwd?: string; wait: string }) =>
      choose(async (at) => (await import("./commands/mcp.ts")).mcpCommand(at, options)),
    );
}

const HELP = `
  claude mcp add substrate -- substrate mcp --agent claude-code
Where the policy asks a person, the call waits, and 'substrate approvals' answers. Agents' own dialogues (MCP elicitation) do not:
a program or a model may answer there.`;
