/** `substrate acp`: what an editor's settings name in place of the agent. */
import type { Command } from "commander";
import type { Action } from "./program-world.ts";

export function describeAcp(program: Command, choose: (action: Action) => void): void {
  program
    .command("acp")
    .description(
      "Stand between an editor and an agent that speak the Agent Client Protocol: terminals and files of the agent are the world's",
    )
    .option("--agent <id>", "agent that the commands belong to (default: SUBSTRATE_AGENT_ID, else acp)")
    .option("--profile <policy>", "a policy that narrows the assigned one (default: SUBSTRATE_PROFILE)")
    .option("--ask-editor", "let a yes in the editor's dialogue answer a question that waits for a person")
    .passThroughOptions()
    .argument("<agent...>", "the agent and its arguments")
    .usage("[options] -- AGENT...")
    .addHelpText("after", HELP)
    .action((words: string[], options: { agent?: string; profile?: string; askEditor?: boolean }) =>
      choose(async (at) => (await import("./commands/acp.ts")).acpCommand(at, words, options)),
    );
}

const HELP = `
Permission dialogues show the verdict and its rule; what the policy denies is answered without one. Without --ask-editor a question of the
policy is answered by 'substrate approvals': the protocol lets an editor answer dialogues by its settings, and nothing tells that from a
person. The agent itself runs on the host, as the editor would start it, and what it does without asking the editor is not covered: connect
its hooks ('substrate init'), or run it whole in a world: substrate acp -- substrate run -- AGENT.`;
