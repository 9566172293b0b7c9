/** `substrate service`: verbs, options and help. */
import type { Command } from "commander";
import type { ServiceOptions } from "./commands/service.ts";
import type { Action } from "./program-world.ts";

const INSTALL_HELP = `
Writes two units of systemd (on macOS a property list of launchd), shows them first and asks; without a terminal, only --yes writes.
The broker then starts at the login, again after a crash, and hangs no client that connects meanwhile. Agents named in config.yaml get
their sockets from systemd too: repeat the command after naming one, and after an upgrade into another folder.
--system, as root: one broker from the boot on, for the user behind sudo, else for root.`;

export function describeService(program: Command, choose: (action: Action) => void): void {
  const service = program
    .command("service")
    .description("Start the broker after each login, by systemd or launchd");
  const system = ["--system", "a service of the system instead of your own; as root"] as const;
  const yes = ["-y, --yes", "do it without asking"] as const;
  const json = ["--json", "as JSON"] as const;
  service
    .command("install")
    .description("Write the service's files, and start it now and after each login; again: upgrade")
    .option(...yes)
    .option(...system)
    .option(...json)
    .addHelpText("after", INSTALL_HELP)
    .action((options: ServiceOptions) =>
      choose(async (at) => (await import("./commands/service.ts")).installService(at, options)),
    );
  service
    .command("remove")
    .description("Stop the service and remove its files; policies, trace and held changes stay")
    .option(...yes)
    .option(...system)
    .option(...json)
    .action((options: ServiceOptions) =>
      choose(async (at) => (await import("./commands/service.ts")).removeService(at, options)),
    );
  service
    .command("status")
    .description("Show whether the service is installed, enabled and running; exit 1 unless it runs")
    .option(...system)
    .option(...json)
    .action((options: ServiceOptions) =>
      choose(async (at) => (await import("./commands/service.ts")).serviceStatus(at, options)),
    );
}
