/** `substrate world`: verbs, options and help. */
import type { Command } from "commander";
import type { DoctorOptions } from "./commands/doctor.ts";
import type { StatusOptions } from "./commands/world.ts";
import type { RestartOptions, WarmOptions } from "./commands/world-operate.ts";
import type { PublishOptions } from "./commands/world-publish.ts";
import type { Terminal } from "./terminal/terminal.ts";

/** The action of a command line, run after the whole line is parsed. */
export type Action = (terminal: Terminal) => Promise<number>;

const AGENT = ["--agent <id>", "whose world (default: SUBSTRATE_AGENT_ID, else human)"] as const;
const PROFILE = [
  "--profile <policy>",
  "a policy that narrows the assigned one (default: SUBSTRATE_PROFILE)",
] as const;
const JSON_FLAG = ["--json", "as JSON"] as const;

const PUBLISH_HELP = `
A world is made when there is none. The port closes when the world ends; 'world.publish: [PORT]' in a policy opens it
with each new one. Every program of this host can connect, and none of another host.`;

export function describeWorld(program: Command, choose: (action: Action) => void): void {
  const world = program.command("world").description("The isolated worlds");
  world
    .command("status")
    .description("What this host isolates, and the warm worlds")
    .option("--mounts", "list the mounts of each world")
    .option(...JSON_FLAG)
    .action((options: StatusOptions) =>
      choose(async (at) => (await import("./commands/world.ts")).worldStatus(at, options)),
    );
  world
    .command("warm")
    .description("Make this folder's world now, so that the first command finds it ready")
    .option(...AGENT)
    .option(...PROFILE)
    .option(...JSON_FLAG)
    .action((options: WarmOptions) =>
      choose(async (at) => (await import("./commands/world-operate.ts")).warmWorld(at, options)),
    );
  world
    .command("restart")
    .description("End this folder's world with all that was kept in it, and make a new one")
    .option(...AGENT)
    .option(...PROFILE)
    .option("--all", "end every world of every agent, and make none")
    .option("--force", "also while commands run there; they are ended")
    .option(...JSON_FLAG)
    .action((options: RestartOptions) =>
      choose(async (at) => (await import("./commands/world-operate.ts")).restartWorld(at, options)),
    );
  world
    .command("publish")
    .description("Let a port of this host's 127.0.0.1 lead to the same port of this folder's world")
    .argument("<port>", "of the world's localhost, 1 to 65535")
    .option("--host-port <port>", "another port of this host")
    .option(...AGENT)
    .option("--close", "take it back, and end what is connected")
    .option(...JSON_FLAG)
    .addHelpText("after", PUBLISH_HELP)
    .action((port: string, options: PublishOptions) =>
      choose(async (at) => (await import("./commands/world-publish.ts")).publishPort(at, port, options)),
    );
  world
    .command("doctor")
    .description("Try each thing that a world needs of this host, and print what mends it; needs no broker")
    .option("--mend", "remove what brokers that are gone have left behind")
    .option(...JSON_FLAG)
    .action((options: DoctorOptions) =>
      choose(async (at) => (await import("./commands/doctor.ts")).worldDoctor(at, options)),
    );
}
