/** The entry point: reads the process's surroundings once, and hands them on. */
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { WorldBackend } from "../broker/broker.ts";
import { HomeRefused, homeLayout } from "../broker/home.ts";
import type { LinuxOptions } from "../world/linux/backend.ts";
import { runCli } from "./cli/program.ts";
import { EXIT_SUBSTRATE, type Terminal } from "./cli/terminal.ts";
import { installationAt } from "./installation.ts";

/** Where a privileged broker keeps upper and work folders (CONTRACT §2): homes are often on file systems without room. */
const ROOT_OVERLAY = "/var/lib/substrate/overlay";

/** A world is ready in some 20 ms; a host under load may take a hundred times as long. */
const FIRST_TRY_MS = 15_000;

// Whoever reads our output may stop (`| head`): that is no failure of ours.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
});

try {
  process.exitCode = await runCli(terminalOf(process), process.argv.slice(2));
} catch (error) {
  process.stderr.write(`substrate: ${error instanceof HomeRefused ? error.message : String(error)}\n`);
  process.exitCode = EXIT_SUBSTRATE;
}

function terminalOf(host: NodeJS.Process): Terminal {
  const uid = host.getuid?.() ?? -1;
  const gid = host.getgid?.() ?? -1;
  const installation = installationAt(fileURLToPath(new URL("..", import.meta.url)));
  const root = host.env["SUBSTRATE_HOME"];
  const home = homeLayout(
    root === undefined || root === "" ? join(homedir(), ".substrate") : resolve(root),
    uid === 0 ? ROOT_OVERLAY : undefined,
  );
  const inits = { init: installation.init, uid, gid, strays: home.overlay, quarantine: home.quarantine };
  return {
    home,
    installation,
    createBackend: async () => await linuxBackend(inits),
    createChecks: async (order) => {
      const { linuxChecks } = await import("../world/doctor/checks.ts");
      return await linuxChecks(inits, await linuxBackend(inits), order, AbortSignal.timeout(FIRST_TRY_MS));
    },
    environment: host.env,
    uid,
    cwd: host.cwd(),
    out: host.stdout,
    err: host.stderr,
    stdin: host.stdin,
  };
}

async function linuxBackend(options: LinuxOptions): Promise<WorldBackend> {
  const { LinuxBackend } = await import("../world/linux/backend.ts");
  return new LinuxBackend(options);
}
