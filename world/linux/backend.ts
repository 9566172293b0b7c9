import { join } from "node:path";
import type { Isolation } from "../../schemas/generated/types.ts";
import { type World, type WorldBackend, type WorldSpec, WorldUnavailable } from "../backend.ts";
import { dropLeftLayers, expireLayers, prepareLayers, removeLayers } from "../overlay/layers.ts";
import { filterHash } from "../seccomp/assemble.ts";
import { architectureOf } from "../seccomp/numbers.ts";
import { seccompPrograms } from "../seccomp/programs.ts";
import { type LinuxOptions, WorldMaker } from "./make.ts";
import type { LinuxWorld } from "./world.ts";

export type { LinuxOptions };

/** A world on a folder that every host has, for nothing but its making: a broker that is killed leaves no folder of it. */
const PROBE: WorldSpec = {
  project: "/usr",
  identity: "probe",
  access: { kind: "direct" },
  files: { read: ["/**"], denyRead: [], write: [], denyWrite: [], seal: [] },
  hidden: [],
  sealed: [],
  limits: {},
  seccomp: "enforce",
  strays: "refused",
};

/** Worlds from Linux namespaces on this host. */
export class LinuxBackend implements WorldBackend {
  readonly #options: LinuxOptions;
  readonly #programs = seccompPrograms(architectureOf(process.arch));
  readonly #maker: WorldMaker;
  /** Each with what settles when nothing is left of it. */
  readonly #worlds = new Map<LinuxWorld, Promise<void>>();
  readonly #starting = new Set<Promise<World>>();
  /** Folders of layers that are in use, or will be at once. */
  readonly #live = new Set<string>();
  readonly #closing = new AbortController();
  #probed: Promise<Isolation> | undefined;

  constructor(options: LinuxOptions) {
    this.#options = options;
    this.#maker = new WorldMaker(options, this.#programs);
  }

  get name(): string {
    return this.#maker.name;
  }

  /** Of the whole, which is the same with cgroups in two parts. */
  filterHash(seccomp: WorldSpec["seccomp"]): string {
    const { filter, guard } = this.#programs[seccomp].withoutCgroup;
    return filterHash(filter, ...(guard === undefined ? [] : [guard]));
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
    return expireLayers(root, maxAgeMs, Date.now(), this.#live);
  }

  dropLeft(root: string, mayHold: (span: string) => boolean): Promise<number> {
    return dropLeftLayers(root, mayHold);
  }

  /** Nothing starts any more; what is starting is given up, and what runs is ended. */
  async close(): Promise<void> {
    this.#closing.abort(new WorldUnavailable("The broker is stopping", "Try again once it runs"));
    await Promise.allSettled(this.#starting);
    const gone = [...this.#worlds.values()];
    await Promise.all([...this.#worlds.keys()].map((world) => world.end("the broker stops")));
    await Promise.all(gone);
  }

  async #start(id: string, spec: WorldSpec, signal: AbortSignal): Promise<World> {
    const layers = this.#layersOf(id, spec);
    this.#live.add(layers);
    try {
      if (spec.access.kind === "overlay") await prepareLayers(layers);
      const world = await this.#maker.make(id, spec, signal);
      this.#worlds.set(world, this.#untilGone(world, layers));
      return world;
    } catch (error) {
      this.#live.delete(layers);
      await removeLayers(layers).catch(() => {
        // They stay until they are swept, ignoring: why there is no world must not be lost for it.
      });
      throw error;
    }
  }

  /** Settles when the world is gone and so is what strayed in it. */
  async #untilGone(world: LinuxWorld, layers: string): Promise<void> {
    await world.ended;
    await world.end("it has ended");
    if (world.spec.access.kind === "direct" && world.spec.strays === "kept") {
      await removeLayers(layers).catch(() => {
        // What resists is swept with the held changes, ignoring: nobody waits for it.
      });
    }
    this.#live.delete(layers);
    this.#worlds.delete(world);
  }

  #layersOf(id: string, spec: WorldSpec): string {
    return spec.access.kind === "overlay" ? spec.access.layers : join(this.#options.strays, id);
  }

  async #tryOut(signal: AbortSignal): Promise<Isolation> {
    const world = await this.#maker.make("wld_probe", PROBE, signal);
    await world.end("the probe is over");
    return world.isolation;
  }
}
