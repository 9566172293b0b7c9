/** The entry point: reads environment, user and streams of the process once, and passes them on. */
import { timeLimit } from "../world/backend.ts";
import { createHash } from "node:crypto";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { WorldBackend } from "../broker/broker.ts";
import { type Home, HomeRefused, homeLayout } from "../broker/settings/home.ts";
import type { RemoteBackend } from "../lima/remote-backend.ts";
import type { Candidate } from "../world/choice.ts";
import type { LinuxOptions } from "../world/linux/backend.ts";
import { type BackendName, backendNames } from "./cli/backend-names.ts";
import { runCli } from "./cli/program.ts";
import { endByHangUp } from "./cli/terminal/hang-up.ts";
import { Complaint, EXIT_SUBSTRATE, type Terminal } from "./cli/terminal/terminal.ts";
import { type Installation, installationAt } from "./serve/installation.ts";
import type { BackendGround } from "./serve/process.ts";

/** Upper and work folders of a privileged broker: homes are often on file systems without room. */
const ROOT_OVERLAY = "/var/lib/substrate/overlay";

const AGENT_REMEDY =
  "Start it where the worlds shall be, with 'substrate agent' or its unit 'substrate-agent.service', and set SUBSTRATE_AGENT_SOCKET to its socket";

/** Time limit for the doctor's first world. A world is ready in some 20 ms; a host under load may take a hundred times as long. */
const FIRST_TRY_MS = 15_000;

endByHangUp(process);

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
  process.stderr.write(
    `substrate: ${error instanceof HomeRefused || error instanceof Complaint ? error.message : String(error)}\n`,
  );
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
  const at = { home, installation, uid };
  const names = (): readonly BackendName[] => backendNames(host.env["SUBSTRATE_BACKEND"], host.platform);
  const inits = { init, preload, uid, gid, strays: home.overlay, quarantine: home.quarantine };
  return {
    home,
    homeAt,
    installation,
    createBackend: async (ground) =>
      firstBackend(names(), { environment: await outsideProjects(host.env), native: inits, at, ground }),
    createAgent: async () => {
      const { WorldAgent } = await import("../world/agent/server.ts");
      const { LinuxBackend } = await import("../world/linux/backend.ts");
      const backend = new LinuxBackend({ ...inits, spareNetwork: true });
      const { overlay, hidden } = home;
      const { version, sealed } = installation;
      return { backend, agent: new WorldAgent({ backend, version, overlay, hidden, sealed }) };
    },
    createChecks: async (order) => {
      if (names().includes("agent") || names().includes("lima")) {
        const { agentChecks, limaChecks } = await import("../lima/checks.ts");
        const backend = await elsewhere(agentPlace(names(), host.env, at));
        if (!names().includes("lima")) return agentChecks(backend);
        const { MACHINE } = await import("../lima/backend.ts");
        const { Limactl } = await import("../lima/limactl.ts");
        const limactl = new Limactl({
          environment: variablesOf(await outsideProjects(host.env)),
          onLine: () => {},
        });
        return limaChecks(limactl, MACHINE, backend);
      }
      if (host.platform !== "linux") {
        const { NoWorlds } = await import("../world/none.ts");
        return new NoWorlds(host.platform).checks();
      }
      const { linuxChecks } = await import("../world/doctor/checks.ts");
      const { LinuxBackend } = await import("../world/linux/backend.ts");
      return await linuxChecks(inits, new LinuxBackend(inits), order, timeLimit(FIRST_TRY_MS));
    },
    shims: async () => {
      const { ShimFolder } = await import("../shim/folder.ts");
      return new ShimFolder(home.shims, installation.shim, host.env["PATH"] ?? "", uid);
    },
    environment: host.env,
    uid,
    cwd: folderOf(host),
    out: host.stdout,
    err: host.stderr,
    stdin: host.stdin,
  };
}

/** Variables of the programs that make worlds elsewhere (`limactl`, `podman`, `docker`): none is found in a project. */
async function outsideProjects(environment: NodeJS.ProcessEnv): Promise<NodeJS.ProcessEnv> {
  const { hostPath } = await import("../broker/project/host-path.ts");
  return { ...environment, PATH: hostPath(environment["PATH"], homedir()) };
}

function folderOf(host: NodeJS.Process): string {
  try {
    return host.cwd();
  } catch {
    throw new Complaint(
      "Cannot find the current folder: it was removed or is closed to this user. Go to another one",
    );
  }
}

type Place = { readonly home: Home; readonly installation: Installation; readonly uid: number };

type Ground = {
  readonly environment: NodeJS.ProcessEnv;
  readonly native: LinuxOptions;
  readonly at: Place;
  readonly ground: BackendGround;
};

/** Creates native Linux worlds, or worlds from podman or docker (`world/container`) where the host refuses native worlds. */
async function firstBackend(names: readonly BackendName[], of: Ground): Promise<WorldBackend> {
  const { FirstThatWorks } = await import("../world/choice.ts");
  const candidates = await Promise.all(names.map((name) => candidate(name, of)));
  return new FirstThatWorks(candidates, of.ground.onChoice);
}

/** How long the broker's start waits for an agent: one that is silent is told of by the first command. */
const GREETING_MS = 3000;

async function candidate(name: BackendName, { environment, native, at, ground }: Ground): Promise<Candidate> {
  const isElsewhere = name === "agent" || name === "lima";
  if (!isElsewhere && process.platform !== "linux") {
    const { NoWorlds } = await import("../world/none.ts");
    return { backend: new NoWorlds(process.platform), yields: () => false };
  }
  if (name === "linux") {
    const { LinuxBackend } = await import("../world/linux/backend.ts");
    const { isHostRefusal } = await import("../world/linux/launch.ts");
    return { backend: new LinuxBackend({ ...native, spareNetwork: true }), yields: isHostRefusal };
  }
  if (name === "agent") {
    const backend = await elsewhere(agentPlace([name], environment, at));
    await backend.greet(timeLimit(GREETING_MS));
    return { backend, yields: () => false };
  }
  const { home } = at;
  if (name === "lima") return { backend: await limaBackend(environment, at, ground), yields: () => false };
  const { ContainerBackend } = await import("../world/container/backend.ts");
  const { containerRuntime } = await import("../world/container/runtimes.ts");
  const runtime = containerRuntime(name, environment, native.uid, home.containers);
  return {
    backend: new ContainerBackend({ ...native, runtime, folder: home.containers }),
    yields: () => true,
  };
}

type Elsewhere = {
  readonly at: Place;
  readonly name: string;
  readonly socket: string;
  readonly remedy: string;
};

/** Throws {@link Complaint} without a socket. */
function agentPlace(names: readonly BackendName[], environment: NodeJS.ProcessEnv, at: Place): Elsewhere {
  if (names.includes("lima"))
    return {
      at,
      name: "lima",
      socket: limaSocket(at.home),
      remedy: "Any command starts the machine: substrate exec -- true",
    };
  const socket = environment["SUBSTRATE_AGENT_SOCKET"];
  if (socket === undefined || socket === "")
    throw new Complaint(
      "SUBSTRATE_BACKEND=agent needs SUBSTRATE_AGENT_SOCKET, the Unix socket of a world agent ('substrate agent' starts one)",
    );
  return { at, name: "agent", socket: resolve(socket), remedy: AGENT_REMEDY };
}

async function elsewhere({ at, ...place }: Elsewhere): Promise<RemoteBackend> {
  const { RemoteBackend } = await import("../lima/remote-backend.ts");
  return new RemoteBackend({ ...place, ...(await remoteOptions(at)) });
}

function limaSocket({ root }: Home): string {
  return join(root, "sock/lima-agent.sock");
}

async function limaBackend(
  environment: NodeJS.ProcessEnv,
  at: Place,
  { projects, note }: BackendGround,
): Promise<WorldBackend> {
  const { LimaBackend } = await import("../lima/backend.ts");
  const { home, installation } = at;
  return new LimaBackend({
    ...(await remoteOptions(at)),
    socket: limaSocket(home),
    ground: { home: homedir(), installation: installation.root },
    projects,
    template: join(installation.root, "lima/substrate.yaml"),
    file: join(home.root, "run/lima.yaml"),
    environment: variablesOf(environment),
    note,
  });
}

/** Lima looks for its machines in HOME or LIMA_HOME, and for its drivers on PATH. */
function variablesOf(environment: NodeJS.ProcessEnv): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(environment).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

async function remoteOptions({ home, installation: { version }, uid }: Place): Promise<{
  readonly version: string;
  readonly uid: number;
  readonly store: string;
  readonly takeOut: (path: string) => string;
}> {
  const { takeOut } = await import("../world/linux/quarantine.ts");
  return {
    version,
    uid,
    store: createHash("sha256").update(home.root).digest("hex").slice(0, 16),
    takeOut: (path) => takeOut(Buffer.from(path), home.quarantine).toString("utf8"),
  };
}
