import type { Isolation } from "../../schemas/generated/types.ts";
import { type World, type WorldBackend, type WorldSpec, WorldUnavailable } from "../backend.ts";
import { expireLayers, prepareLayers, removeLayers } from "../overlay/layers.ts";
import { mountPlan } from "../plan/mounts.ts";
import { operationWords } from "../plan/operations.ts";
import { assembleFilter, filterHash } from "../seccomp/assemble.ts";
import { architectureOf } from "../seccomp/numbers.ts";
import { DENIED } from "../seccomp/table.ts";
import { hostFacts } from "./host-facts.ts";
import { isolationVector } from "./isolation.ts";
import { DIRECT, LaunchFailed, type Launcher } from "./launch.ts";
import { ALWAYS } from "./namespaces.ts";
import { LinuxWorld } from "./world.ts";

export type LinuxOptions = {
  /** The `substrate-init` program. */
  readonly init: string;
  /** Identity that commands keep inside: the broker's own. */
  readonly uid: number;
  readonly gid: number;
  /** How init is started; absent: as a child of the broker. */
  readonly launcher?: Launcher;
};

/** A world on a folder that every host has, for nothing but its making: a broker that is killed leaves no folder of it. */
const PROBE: WorldSpec = {
  project: "/usr",
  identity: "probe",
  access: { kind: "direct" },
  files: { read: ["/**"], denyRead: [], write: [], denyWrite: [] },
  hidden: [],
  sealed: [],
  limits: {},
  seccomp: "enforce",
};

/** Worlds from Linux namespaces on this host. */
export class LinuxBackend implements WorldBackend {
  readonly #launcher: Launcher;
  readonly #options: LinuxOptions;
  readonly #filter = assembleFilter(DENIED, architectureOf(process.arch));
  readonly #worlds = new Set<LinuxWorld>();
  readonly #starting = new Set<Promise<World>>();
  readonly #closing = new AbortController();
  /** Whether a user namespace is needed: found out by the first world, by trying. */
  #userNamespace: boolean | undefined;
  #probed: Promise<Isolation> | undefined;

  constructor(options: LinuxOptions) {
    this.#options = options;
    this.#launcher = options.launcher ?? DIRECT;
    this.#userNamespace = this.#launcher.userNamespace;
  }

  get name(): string {
    return this.#launcher.name;
  }

  get filterHash(): string {
    return filterHash(this.#filter);
  }

  probe(signal: AbortSignal): Promise<Isolation> {
    this.#probed ??= this.#tryOut(signal).catch((error: unknown) => {
      this.#probed = undefined;
      throw error;
    });
    return this.#probed;
  }

  async start(id: string, spec: WorldSpec, signal: AbortSignal): Promise<World> {
    const starting = this.#start(id, spec, AbortSignal.any([signal, this.#closing.signal]));
    this.#starting.add(starting);
    try {
      return await starting;
    } finally {
      this.#starting.delete(starting);
    }
  }

  async dropHeld(world: World): Promise<void> {
    if (world.spec.access.kind === "overlay") await removeLayers(world.spec.access.layers);
  }

  expireHeld(root: string, maxAgeMs: number): Promise<number> {
    const live = [...this.#worlds].flatMap(({ spec }) =>
      spec.access.kind === "overlay" ? [spec.access.layers] : [],
    );
    return expireLayers(root, maxAgeMs, Date.now(), new Set(live));
  }

  /** Nothing starts any more; what is starting is given up, and what runs is ended. */
  async close(): Promise<void> {
    this.#closing.abort(new WorldUnavailable("The broker is stopping", "Try again once it runs"));
    await Promise.allSettled(this.#starting);
    await Promise.all([...this.#worlds].map((world) => world.end("the broker stops")));
  }

  async #start(id: string, spec: WorldSpec, signal: AbortSignal): Promise<World> {
    const { access } = spec;
    if (access.kind === "overlay") await prepareLayers(access.layers);
    try {
      const world = await this.#launch(id, spec, signal);
      this.#worlds.add(world);
      void world.ended.then(() => this.#worlds.delete(world));
      return world;
    } catch (error) {
      if (access.kind === "overlay") {
        await removeLayers(access.layers).catch(() => {
          // They stay until they expire, ignoring: why there is no world must not be lost for it.
        });
      }
      throw error;
    }
  }

  async #tryOut(signal: AbortSignal): Promise<Isolation> {
    const world = await this.#launch("wld_probe", PROBE, signal);
    await world.end("the probe is over");
    return world.isolation;
  }

  async #launch(id: string, spec: WorldSpec, signal: AbortSignal): Promise<LinuxWorld> {
    if (this.#userNamespace !== undefined) return await this.#launchAs(id, spec, this.#userNamespace, signal);
    try {
      return await this.#launchAs(id, spec, false, signal);
    } catch (error) {
      if (!lacksPrivilege(error)) throw error;
      return await this.#launchAs(id, spec, true, signal);
    }
  }

  async #launchAs(
    id: string,
    spec: WorldSpec,
    userNamespace: boolean,
    signal: AbortSignal,
  ): Promise<LinuxWorld> {
    const mounts = mountPlan(spec, hostFacts(userNamespace));
    const launched = await this.#launcher.launch(
      id,
      {
        ...this.#options,
        namespaces: userNamespace ? ["user", ...ALWAYS] : ALWAYS,
        mounts,
        filter: this.#filter,
      },
      signal,
    );
    this.#userNamespace = userNamespace;
    const isolation = {
      ...isolationVector(launched.achieved, spec.access.kind === "overlay"),
      backend: this.name,
    };
    return new LinuxWorld(
      { id, spec, isolation, mounts: mounts.map((mount) => operationWords(mount).join(" ")) },
      launched,
    );
  }
}

function lacksPrivilege(error: unknown): boolean {
  return error instanceof LaunchFailed && error.step.startsWith("unshare") && error.errno === "EPERM";
}
