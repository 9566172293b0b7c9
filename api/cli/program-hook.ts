/** `substrate hook`: what agents' settings name. */
import type { Command } from "commander";
import type { Action } from "./program-world.ts";

export function describeHook(program: Command, choose: (action: Action) => void): void {
  program
    .command("hook")
    .description(
      "Answer an event of a coding agent on standard input, before one of its tools runs: claude-code, codex, gemini, opencode, cursor or copilot",
    )
    .usage("AGENT")
    // Wrong words block the tool, as a wrong event does.
    .argument("[agent...]")
    .allowUnknownOption()
    .addHelpText("after", HELP)
    .action((words: string[]) =>
      choose(async (at) => (await import("./commands/hook.ts")).hookCommand(at, words)),
    );
}

const HELP = `
Agents' settings name this command: 'hooks.PreToolUse' of Claude Code, Codex and Copilot, 'hooks.BeforeTool' of Gemini CLI,
'hooks.preToolUse' and 'hooks.beforeShellExecution' of Cursor. A shell command is denied, or rewritten so that 'substrate exec' runs
it in a world; where the policy asks a person, the agent asks and the broker holds the command until 'substrate approvals' answers it.
Tools that open files are judged by the policy's fs lists. Everything that goes wrong is exit code 2, which blocks the tool.

Events that decide nothing are recorded as spans: sessions that begin and end, prompts (hash and length, not the text), turns that are over,
tools that ended. Recording never stops an agent: what goes wrong is said on standard error, and the exit code is 0.`;
