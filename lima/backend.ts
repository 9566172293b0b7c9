/** Worlds in a virtual machine that Lima manages: for hosts that are not Linux. */
import { readFile } from "node:fs/promises";
import { type World, type WorldSpec, WorldUnavailable } from "../world/backend.ts";
import { isSameVersion } from "./agent-health.ts";
import { describeMachine, type Ground, INSTALLATION_MOUNT, mountsOf } from "./description.ts";
import { Limactl } from "./limactl.ts";
import { LimaMachine } from "./machine.ts";
import { RemoteBackend, type RemoteOptions } from "./remote-backend.ts";

/** The machine's name: one for all projects of a user. */
export const MACHINE = "substrate";

/** An agent that is replaced or crashed answers again within seconds; a machine that a person has just started, not earlier. */
const SILENCE_MS = 20_000;

export type LimaOptions = Omit<RemoteOptions, "name" | "remedy" | "ready"> & {
  readonly ground: Omit<Ground, "projects" | "socket">;
  /** The folders of `projects` in config.yaml, as they are now. */
  readonly projects: () => readonly string[];
  /** The shipped template, and where the machine's description is written. */
  readonly template: string;
  readonly file: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Called with what the machine does, and with what Lima prints. */
  readonly note: (line: string) => void;
};

export class LimaBackend extends RemoteBackend {
  readonly #machine: LimaMachine;
  readonly #projects: LimaOptions["projects"];

  constructor(options: LimaOptions) {
    const { ground, projects, socket, version, template, file, environment, note } = options;
    const now = (): Ground => ({ ...ground, socket, projects: projects() });
    const machine = new LimaMachine({
      name: MACHINE,
      limactl: new Limactl({ environment, onLine: (line) => note(`limactl: ${line}`) }),
      mounts: () => mountsOf(now()),
      describe: async () => describeMachine(await readFile(template, "utf8"), now()),
      file,
      greet: (signal) => isSameVersion(socket, version, signal),
      provision: `${INSTALLATION_MOUNT}/lima/provision.sh`,
      silenceMs: SILENCE_MS,
      onStep: (step) => note(`The virtual machine '${MACHINE}': ${step}`),
    });
    super({
      ...options,
      name: "lima",
      remedy: `'limactl list' shows the virtual machine '${MACHINE}'; 'limactl stop ${MACHINE}' lets the next command start it anew`,
      ready: async (signal) => {
        if (projects().length === 0) throw noProjects();
        await machine.ready(signal);
      },
      admits: (project) => {
        if (!machine.mayWrite(project)) throw notYetShown(project);
      },
    });
    this.#machine = machine;
    this.#projects = projects;
  }

  override async start(id: string, spec: WorldSpec, signal: AbortSignal): Promise<World> {
    const { project } = spec;
    const shown = this.#projects();
    if (shown.length > 0 && !shown.some((root) => project === root || project.startsWith(`${root}/`)))
      throw new WorldUnavailable(
        `The virtual machine does not show '${project}': it shows the folders of 'projects' in config.yaml`,
        "Name the folder, or one above it, under 'projects' in config.yaml",
      );
    return await super.start(id, spec, signal);
  }

  override async close(): Promise<void> {
    this.#machine.close();
    await super.close();
  }
}

function notYetShown(project: string): WorldUnavailable {
  return new WorldUnavailable(
    `The virtual machine does not let commands write '${project}' yet: it was started before the folder was named under 'projects' in config.yaml`,
    `'limactl stop ${MACHINE}' lets the next command start it with that folder; commands that run in it end`,
  );
}

/** The machine shows folders from its start on, so they must be known before. */
function noProjects(): WorldUnavailable {
  return new WorldUnavailable(
    "Substrate needs a Linux VM here: it makes one, and does not know which folders the virtual machine may show",
    "Name the folders of your projects in config.yaml, such as 'projects: [~/code]', and try again",
  );
}
