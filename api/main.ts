/** The entry point: reads environment, user and streams of the process once, and passes them on. */
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { BackendChoice, WorldBackend } from "../broker/broker.ts";
import { type Home, HomeRefused, homeLayout } from "../broker/settings/home.ts";
import type { Candidate } from "../world/choice.ts";
import type { LinuxOptions } from "../world/linux/backend.ts";
import type { NoWorlds } from "../world/none.ts";
import { type BackendName, backendNames } from "./cli/backend-names.ts";
import { runCli } from "./cli/program.ts";
import { EXIT_SUBSTRATE, type Terminal } from "./cli/terminal/terminal.ts";
import { installationAt } from "./serve/installation.ts";

/** Upper and work folders of a privileged broker: homes are often on file systems without room. */
const ROOT_OVERLAY = "/var/lib/substrate/overlay";

/** Time limit for the doctor's first world. A world is ready in some 20 ms; a host under load may take a hundred times as long. */
const FIRST_TRY_MS = 15_000;

// A closed pipe (`| head`) is not a failure of the CLI.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") return;
  process.stderr.write(`substrate: Cannot write standard output: ${error.message}\n`);
  // At once: whatever else would be written is lost too.
  process.exit(EXIT_SUBSTRATE);
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
  const homeAt = (folder: string, owner: number): Home =>
    homeLayout(folder, owner === 0 ? ROOT_OVERLAY : undefined);
  const home = homeAt(root === undefined || root === "" ? join(homedir(), ".substrate") : resolve(root), uid);
  const { init, preload } = installation;
  const inits = { init, preload, uid, gid, strays: home.overlay, quarantine: home.quarantine };
  return {
    home,
    homeAt,
    installation,
    createBackend: (onChoice) => firstBackend(host.env, inits, home, onChoice),
    createChecks: async (order) => {
      if (host.platform !== "linux") return (await noWorlds(host.platform)).checks();
      const { linuxChecks } = await import("../world/doctor/checks.ts");
      const { LinuxBackend } = await import("../world/linux/backend.ts");
      return await linuxChecks(inits, new LinuxBackend(inits), order, AbortSignal.timeout(FIRST_TRY_MS));
    },
    shims: async () => {
      const { ShimFolder } = await import("../shim/folder.ts");
      return new ShimFolder(home.shims, installation.shim, host.env["PATH"] ?? "", uid);
    },
    environment: host.env,
    uid,
    cwd: host.cwd(),
    out: host.stdout,
    err: host.stderr,
    stdin: host.stdin,
  };
}

/** Creates native Linux worlds, or worlds from podman or docker (`world/container`) where the host refuses native worlds. */
async function firstBackend(
  environment: NodeJS.ProcessEnv,
  native: LinuxOptions,
  home: Home,
  onChoice: (choice: BackendChoice) => void,
): Promise<WorldBackend> {
  const names = backendNames(environment["SUBSTRATE_BACKEND"]);
  const { FirstThatWorks } = await import("../world/choice.ts");
  if (process.platform !== "linux")
    return new FirstThatWorks([{ backend: await noWorlds(process.platform), yields: () => false }], onChoice);
  const candidates = await Promise.all(names.map((name) => candidate(name, environment, native, home)));
  return new FirstThatWorks(candidates, onChoice);
}

async function noWorlds(platform: NodeJS.Platform): Promise<NoWorlds> {
  const { NoWorlds: Backend } = await import("../world/none.ts");
  return new Backend(platform);
}

async function candidate(
  name: BackendName,
  environment: NodeJS.ProcessEnv,
  native: LinuxOptions,
  home: Home,
): Promise<Candidate> {
  if (name === "linux") {
    const { LinuxBackend } = await import("../world/linux/backend.ts");
    const { isHostRefusal } = await import("../world/linux/launch.ts");
    return { backend: new LinuxBackend({ ...native, spareNetwork: true }), yields: isHostRefusal };
  }
  const { ContainerBackend } = await import("../world/container/backend.ts");
  const { containerRuntime } = await import("../world/container/runtimes.ts");
  const runtime = containerRuntime(name, environment, native.uid, home.containers);
  return {
    backend: new ContainerBackend({ ...native, runtime, folder: home.containers }),
    yields: () => true,
  };
}
