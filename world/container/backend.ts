import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Isolation } from "../../schemas/generated/types.ts";
import type { World, WorldBackend, WorldSpec } from "../model/world.ts";
import { LinuxBackend, type LinuxOptions } from "../linux/backend.ts";
import { ContainerLauncher, OWN_FOLDERS } from "./launch.ts";
import { ContainerUnavailable, containersLabelled, removeContainer } from "./program.ts";
import { type ContainerRuntime, OWNER_LABEL } from "./runtime.ts";

export type ContainerOptions = LinuxOptions & {
  readonly runtime: ContainerRuntime;
  /** Holds the sockets and the containers' root: private to this broker, and hidden from every world. */
  readonly folder: string;
};

/** Makes the same worlds as on the host, where only a container runtime may start them. */
export class ContainerBackend implements WorldBackend {
  /** None: the layers belong to the container's user, chosen by the runtime. */
  readonly held = null;
  readonly #options: ContainerOptions;
  readonly #worlds: LinuxBackend;
  #probed: Promise<Isolation> | undefined;

  constructor(options: ContainerOptions) {
    this.#options = options;
    this.#worlds = new LinuxBackend({ ...options, launcher: new ContainerLauncher(options) });
  }

  get name(): string {
    return this.#worlds.name;
  }

  filterHash(seccomp: WorldSpec["seccomp"]): string {
    return this.#worlds.filterHash(seccomp);
  }

  probe(signal: AbortSignal): Promise<Isolation> {
    this.#probed ??= this.#tryOut(signal).catch((error: unknown) => {
      this.#probed = undefined;
      throw error;
    });
    return this.#probed;
  }

  async start(id: string, spec: WorldSpec, signal: AbortSignal): Promise<World> {
    await this.probe(signal);
    return await this.#worlds.start(id, spec, signal);
  }

  dropHeld(world: World): Promise<void> {
    return this.#worlds.dropHeld(world);
  }

  expireHeld(root: string, maxAgeMs: number): Promise<number> {
    return this.#worlds.expireHeld(root, maxAgeMs);
  }

  dropLeft(root: string, mayHold: (span: string) => boolean): Promise<number> {
    return this.#worlds.dropLeft(root, mayHold);
  }

  close(): Promise<void> {
    return this.#worlds.close();
  }

  async #tryOut(signal: AbortSignal): Promise<Isolation> {
    await this.#sweep();
    const project = await mkdtemp(join(this.#options.folder, OWN_FOLDERS));
    try {
      const id = `wld_probe-${randomBytes(6).toString("hex")}`;
      const world = await this.#worlds.start(id, probeSpec(project), signal);
      try {
        await this.#proveOwner(world);
        return world.isolation;
      } finally {
        await world.end("the probe is over");
      }
    } finally {
      await rm(project, { recursive: true, force: true });
    }
  }

  /** Removes left-overs of this home's brokers that were killed together with their container runtime, or before a removal. */
  async #sweep(): Promise<void> {
    const { runtime, folder } = this.#options;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    for (const name of await readdir(folder))
      if (name.startsWith(OWN_FOLDERS)) await rm(join(folder, name), { recursive: true, force: true });
    const left = await containersLabelled(runtime.program, `${OWNER_LABEL}=${folder}`);
    for (const name of left) await removeContainer(runtime.program, name);
  }

  /** Checks the owner of a file made inside. The daemon may run as another user or map users, so only the result counts. */
  async #proveOwner(world: World): Promise<void> {
    const { uid, gid, runtime } = this.#options;
    const proof = join(world.spec.project, "proof");
    const run = world.exec({
      argv: ["/bin/sh", "-c", ": >proof"],
      cwd: world.spec.project,
      env: {},
      stdin: undefined,
      background: "kill",
      window: 4096,
      onOutput: () => {},
      onViolation: () => {},
    });
    const ending = await run.ending;
    const made = await stat(proof).catch(() => undefined);
    if (made !== undefined && made.uid === uid && made.gid === gid) return;
    throw new ContainerUnavailable(
      `A file made in a container of ${runtime.name} should be of user ${uid} and group ${gid}; ${made === undefined ? `no file was made (${ending.kind})` : `the file is of user ${made.uid} and group ${made.gid}`}`,
      "Use podman, or a docker daemon that runs as root and maps no users",
    );
  }
}

function probeSpec(project: string): WorldSpec {
  return {
    project,
    identity: "probe",
    access: { kind: "direct" },
    files: { read: ["/**"], denyRead: [], write: [`${project}/**`], denyWrite: [], seal: [] },
    hidden: [],
    sealed: [],
    limits: {},
    seccomp: "enforce",
    // Requests a port, because only then does the host show its limitations.
    network: { ports: [443], ranges: [] },
  };
}
