/** `substrate world`: verbs, options and help. */
import type { Command } from "commander";
import type { DoctorOptions } from "./commands/doctor.ts";
import type { StatusOptions } from "./commands/world.ts";
import type { RestartOptions, WarmOptions } from "./commands/world-operate.ts";
import type { PublishOptions } from "./commands/world-publish.ts";
import type { Terminal } from "./terminal/terminal.ts";

/** The action of a command line, run after the whole line is parsed. */
export type Action = (terminal: Terminal) => Promise<number>;

const AGENT = [
  "--agent <id>",
  "agent that the world belongs to (default: SUBSTRATE_AGENT_ID, else human)",
] as const;
const PROFILE = [
  "--profile <policy>",
  "a policy that narrows the assigned one (default: SUBSTRATE_PROFILE)",
] as const;
const JSON_FLAG = ["--json", "as JSON"] as const;

const PUBLISH_HELP = `
If this folder has no world yet, one is started. The port closes when the world ends; 'world.publish: [PORT]' in a policy
opens it with each new world. Every program on this host can connect; other hosts cannot.`;

export function describeWorld(program: Command, choose: (action: Action) => void): void {
  const world = program
    .command("world")
    .description("Inspect and control worlds, the isolated environments that commands run in");
  world
    .command("status")
    .description("Show what this host isolates, and the warm worlds")
    .option("--mounts", "list the mounts of each world")
    .option(...JSON_FLAG)
    .action((options: StatusOptions) =>
      choose(async (at) => (await import("./commands/world.ts")).worldStatus(at, options)),
    );
  world
    .command("warm")
    .description("Start this folder's world now, so that the first command finds it ready")
    .option(...AGENT)
    .option(...PROFILE)
    .option(...JSON_FLAG)
    .action((options: WarmOptions) =>
      choose(async (at) => (await import("./commands/world-operate.ts")).warmWorld(at, options)),
    );
  world
    .command("restart")
    .description("End this folder's world with everything running in it, and start a new one")
    .option(...AGENT)
    .option(...PROFILE)
    .option("--all", "end every world of every agent, and start no new one")
    .option("--force", "restart even while commands run there; they are ended")
    .option(...JSON_FLAG)
    .action((options: RestartOptions) =>
      choose(async (at) => (await import("./commands/world-operate.ts")).restartWorld(at, options)),
    );
  world
    .command("publish")
    .description("Forward a port of this host's 127.0.0.1 to the same port of this folder's world")
    .argument("<port>", "port of the world's localhost, 1 to 65535")
    .option("--host-port <port>", "use this port of the host instead of the same one")
    .option(...AGENT)
    .option("--close", "close the port again, and end its connections")
    .option(...JSON_FLAG)
    .addHelpText("after", PUBLISH_HELP)
    .action((port: string, options: PublishOptions) =>
      choose(async (at) => (await import("./commands/world-publish.ts")).publishPort(at, port, options)),
    );
  world
    .command("doctor")
    .description(
      "Test each feature that a world needs from this host, and print how to mend what is missing; needs no broker",
    )
    .option("--mend", "remove what dead brokers left behind")
    .option(...JSON_FLAG)
    .action((options: DoctorOptions) =>
      choose(async (at) => (await import("./commands/doctor.ts")).worldDoctor(at, options)),
    );
}
