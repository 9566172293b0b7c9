/** `substrate agent`: hidden, because a service manager or a virtual machine starts it, not a person. */
import type { Command } from "commander";
import type { Action } from "./program-world.ts";

export function describeAgent(program: Command, choose: (action: Action) => void): void {
  program
    .command("agent", { hidden: true })
    .description("Serve worlds of this machine to brokers elsewhere, until SIGTERM")
    .option("--socket <path>", "the Unix socket (default: sock/world-agent.sock in SUBSTRATE_HOME)")
    .action(({ socket }: { socket?: string }) =>
      choose(async (at) => await (await import("../serve/agent.ts")).serveAgent(at, socket)),
    );
}
