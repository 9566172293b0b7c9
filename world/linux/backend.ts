import { join } from "node:path";
import type { Isolation } from "../../schemas/generated/types.ts";
import type { World, WorldBackend, WorldSpec } from "../model/world.ts";
import { WorldUnavailable } from "../model/unavailable.ts";
import { dropLeftLayers, expireLayers, removeLayers } from "../overlay/layers.ts";
import { LayerStore } from "../overlay/held-store.ts";
import { filterHash } from "../seccomp/assemble.ts";
import { architectureOf } from "../seccomp/numbers.ts";
import { seccompPrograms } from "../seccomp/programs.ts";
import { tooLate } from "./launch.ts";
import { type LinuxOptions, type Order, WorldMaker } from "./make.ts";
import type { LinuxWorld } from "./world.ts";

export type { LinuxOptions };

/**
 * Spec of a trial world, on a folder found on every host, so that a killed broker leaves no folder behind. Requests a port,
 * because only then does the host show whether nft rules work.
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

/** Makes worlds from Linux namespaces on this host. */
export class LinuxBackend implements WorldBackend {
  readonly held: LayerStore;
  readonly #options: LinuxOptions;
  readonly #programs = seccompPrograms(architectureOf(process.arch));
  readonly #maker: WorldMaker;
  /** Each world with a promise for the end of its cleanup. */
  readonly #worlds = new Map<LinuxWorld, Promise<void>>();
  readonly #starting = new Set<Promise<unknown>>();
  /** Layer folders in use, or about to be used. */
  readonly #live = new Set<string>();
  readonly #closing = new AbortController();
  /** Each command's span has one. */
  readonly #filterHashes = new Map<WorldSpec["seccomp"], string>();
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

  /** Hashes the filter used without cgroups; with cgroups the same rules are split into two filters. */
  filterHash(seccomp: WorldSpec["seccomp"]): string {
    const known = this.#filterHashes.get(seccomp);
    if (known !== undefined) return known;
    const { filter, commandFilter, guard } = this.#programs(seccomp === "log" ? "log" : "closed")
      .withoutCgroup.plain;
    const hash = filterHash(...[filter, commandFilter, guard].filter((program) => program !== undefined));
    this.#filterHashes.set(seccomp, hash);
    return hash;
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

  /** Aborts pending starts and ends every world; later starts fail. */
  async close(): Promise<void> {
    this.#closing.abort(
      new WorldUnavailable("The broker is stopping", "Try again when the broker runs again"),
    );
    await Promise.allSettled(this.#starting);
    this.#maker.close();
    const gone = [...this.#worlds.values()];
    await Promise.all([...this.#worlds.keys()].map((world) => world.end("the broker stops")));
    await Promise.all(gone);
    this.#maker.dropGroups();
  }

  async #start(id: string, spec: WorldSpec, signal: AbortSignal): Promise<World> {
    const strays = join(this.#options.strays, id);
    const folders = spec.access.kind === "overlay" ? [strays, spec.access.layers] : [strays];
    const world = await this.#making({ id, spec }, folders, signal);
    this.#worlds.set(world, this.#untilGone(world, strays, folders));
    return world;
  }

  /** Makes a world. `folders` (the world's stray writes and its overlay's layers) count as in use until the world is gone. */
  async #making(order: Order, folders: readonly string[], signal: AbortSignal): Promise<LinuxWorld> {
    for (const folder of folders) this.#live.add(folder);
    try {
      return await this.#maker.make(order, signal);
    } catch (error) {
      const removed = folders.map((folder) => removeLayers(folder).finally(() => this.#live.delete(folder)));
      // A folder resists, ignoring: a sweep removes the folder later, and the reason of the failure matters more.
      await Promise.allSettled(removed);
      throw signal.aborted ? tooLate(signal) : error;
    }
  }

  /** Settles when the world is gone and its stray writes are removed. */
  async #untilGone(world: LinuxWorld, strays: string, folders: readonly string[]): Promise<void> {
    await world.ended;
    await world.end("it has ended");
    await removeLayers(strays).catch(() => {
      // A folder resists, ignoring: nobody waits, and the sweep of held changes removes the folder later.
    });
    for (const folder of folders) this.#live.delete(folder);
    this.#worlds.delete(world);
  }

  async #tryOut(signal: AbortSignal): Promise<Isolation> {
    const world = await this.#making({ id: "wld_probe", spec: PROBE }, [], signal);
    await world.end("the probe is over");
    return world.isolation;
  }

  /** Makes an overlay world: a host without overlays refuses the world with step and path in the message. */
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
