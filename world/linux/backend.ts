import { join } from "node:path";
import type { Isolation } from "../../schemas/generated/types.ts";
import type { PreparedWorld } from "../model/prepared.ts";
import type { World, WorldBackend, WorldSpec } from "../model/world.ts";
import { WorldUnavailable } from "../model/unavailable.ts";
import { dropLeftLayers, expireLayers, removeLayers } from "../overlay/layers.ts";
import { LayerStore } from "../overlay/held-store.ts";
import { filterHash } from "../seccomp/assemble.ts";
import { architectureOf } from "../seccomp/numbers.ts";
import { seccompPrograms } from "../seccomp/programs.ts";
import { type LinuxOptions, type Order, WorldMaker } from "./make.ts";
import { PreparedLinuxWorld } from "./prepared.ts";
import type { LinuxWorld } from "./world.ts";

export type { LinuxOptions };

/**
 * A world on a folder that every host has, for nothing but its making: a broker that is killed leaves no folder of it. It
 * asks for a port, because a host shows only then whether it makes rules.
 */
const PROBE: WorldSpec = {
  project: "/usr",
  identity: "probe",
  access: { kind: "direct" },
  files: { read: ["/**"], denyRead: [], write: [], denyWrite: [], seal: [] },
  hidden: [],
  sealed: [],
  limits: {},
  seccomp: "enforce",
  network: { ports: [443], ranges: [] },
};

/** Worlds from Linux namespaces on this host. */
export class LinuxBackend implements WorldBackend {
  readonly held: LayerStore;
  readonly #options: LinuxOptions;
  readonly #programs = seccompPrograms(architectureOf(process.arch));
  readonly #maker: WorldMaker;
  /** Each with what settles when nothing is left of it. */
  readonly #worlds = new Map<LinuxWorld, Promise<void>>();
  readonly #starting = new Set<Promise<unknown>>();
  /** Folders of layers that are in use, or will be at once. */
  readonly #live = new Set<string>();
  readonly #closing = new AbortController();
  #probed: Promise<Isolation> | undefined;
  #overlay: Promise<string> | undefined;

  constructor(options: LinuxOptions) {
    this.held = new LayerStore(options.init);
    this.#options = options;
    this.#maker = new WorldMaker(options, this.#programs);
  }

  get name(): string {
    return this.#maker.name;
  }

  /** Of the whole, which is the same with cgroups in two parts. */
  filterHash(seccomp: WorldSpec["seccomp"]): string {
    const { filter, guard } = this.#programs[seccomp].withoutCgroup.plain;
    return filterHash(filter, ...(guard === undefined ? [] : [guard]));
  }

  probe(signal: AbortSignal): Promise<Isolation> {
    this.#probed ??= this.#tryOut(signal).catch((error: unknown) => {
      this.#probed = undefined;
      throw error;
    });
    return this.#probed;
  }

  tryOverlay(signal: AbortSignal): Promise<string> {
    this.#overlay ??= this.#tryOutOverlay(signal).catch((error: unknown) => {
      this.#overlay = undefined;
      throw error;
    });
    return this.#overlay;
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

  prepare(id: string, spec: WorldSpec): PreparedWorld {
    const strays = this.#straysOf(id);
    const prepared = new PreparedLinuxWorld(
      id,
      {
        make: (hold, signal) => this.#making({ id, spec, hold }, strays, signal),
        onLayers: (layers) => this.#live.add(layers),
        onWorld: (world, layers) => this.#worlds.set(world, this.#untilGone(world, strays, layers)),
        onFailure: (layers) => this.#live.delete(layers),
      },
      this.#closing.signal,
    );
    this.#starting.add(prepared.over);
    void prepared.over.then(() => this.#starting.delete(prepared.over));
    return prepared;
  }

  async dropHeld(world: World): Promise<void> {
    if (world.spec.access.kind === "overlay") await removeLayers(world.spec.access.layers);
  }

  expireHeld(root: string, maxAgeMs: number): Promise<number> {
    const live = { has: (layers: string) => this.#live.has(layers) || this.held.isInUse(layers) };
    return expireLayers(root, maxAgeMs, Date.now(), live);
  }

  dropLeft(root: string, mayHold: (span: string) => boolean): Promise<number> {
    return dropLeftLayers(root, mayHold);
  }

  /** Nothing starts any more; what is starting is given up, and what runs is ended. */
  async close(): Promise<void> {
    this.#closing.abort(new WorldUnavailable("The broker is stopping", "Try again once it runs"));
    await Promise.allSettled(this.#starting);
    this.#maker.close();
    const gone = [...this.#worlds.values()];
    await Promise.all([...this.#worlds.keys()].map((world) => world.end("the broker stops")));
    await Promise.all(gone);
    this.#maker.dropGroups();
  }

  async #start(id: string, spec: WorldSpec, signal: AbortSignal): Promise<World> {
    if (spec.access.kind === "overlay") return await this.prepare(id, spec).begin(spec.access.layers, signal);
    const strays = this.#straysOf(id);
    const world = await this.#making({ id, spec }, strays, signal);
    this.#worlds.set(world, this.#untilGone(world, strays));
    return world;
  }

  /** What would stray in it is its own until it is gone, also while it waits for its command. */
  async #making(order: Order, strays: string, signal: AbortSignal): Promise<LinuxWorld> {
    this.#live.add(strays);
    try {
      return await this.#maker.make(order, signal);
    } catch (error) {
      this.#live.delete(strays);
      await removeLayers(strays).catch(() => {
        // They stay until they are swept, ignoring: why there is no world must not be lost for it.
      });
      throw error;
    }
  }

  /** Settles when the world is gone and so is what strayed in it. */
  async #untilGone(world: LinuxWorld, strays: string, ...layers: readonly string[]): Promise<void> {
    await world.ended;
    await world.end("it has ended");
    await removeLayers(strays).catch(() => {
      // What resists is swept with the held changes, ignoring: nobody waits for it.
    });
    for (const folder of [strays, ...layers]) this.#live.delete(folder);
    this.#worlds.delete(world);
  }

  #straysOf(id: string): string {
    return join(this.#options.strays, id);
  }

  async #tryOut(signal: AbortSignal): Promise<Isolation> {
    const world = await this.#maker.make({ id: "wld_probe", spec: PROBE }, signal);
    await world.end("the probe is over");
    return world.isolation;
  }

  /** A host that refuses the overlay refuses the world, and says where and why. */
  async #tryOutOverlay(signal: AbortSignal): Promise<string> {
    const layers = join(this.#options.strays, `wld_probe-${process.pid}`);
    this.#live.add(layers);
    try {
      const world = await this.start("wld_probe", { ...PROBE, access: { kind: "overlay", layers } }, signal);
      await world.end("the probe is over");
      return world.isolation.overlay;
    } catch (error) {
      if (!(error instanceof WorldUnavailable) || signal.aborted) throw error;
      return `off: ${error.message}`;
    } finally {
      this.#live.delete(layers);
      await removeLayers(layers);
    }
  }
}
