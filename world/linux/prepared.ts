import type { PreparedWorld } from "../model/prepared.ts";
import type { World } from "../model/world.ts";
import { WorldUnavailable, abortError } from "../model/unavailable.ts";
import { type Layers, prepareLayers, removeLayers } from "../overlay/layers.ts";
import type { Hold } from "./hold.ts";
import type { LinuxWorld } from "./world.ts";

/** What setting one up may take; nobody waits for it. */
const STAGE_PATIENCE_MS = 15_000;

/** What a backend does with the worlds that come of it. */
export type PreparedHooks = {
  /** Makes the world; settles when it has begun. */
  readonly make: (hold: Hold, signal: AbortSignal) => Promise<LinuxWorld>;
  /** Its layers are in use from now on. */
  readonly onLayers: (layers: string) => void;
  readonly onWorld: (world: LinuxWorld, layers: string) => void;
  readonly onFailure: (layers: string) => void;
};

/** A world in the making, which its maker holds before its overlay. */
export class PreparedLinuxWorld implements PreparedWorld {
  readonly id: string;
  readonly ready: Promise<void>;
  readonly over: Promise<void>;
  readonly #hooks: PreparedHooks;
  readonly #making: Promise<LinuxWorld>;
  readonly #ending = new AbortController();
  #begin: (layers: Layers) => void = () => {};
  #state: "waits" | "begun" | "ended" = "waits";

  constructor(id: string, hooks: PreparedHooks, closing: AbortSignal) {
    this.id = id;
    this.#hooks = hooks;
    const layers = new Promise<Layers>((resolve) => {
      this.#begin = resolve;
    });
    const slow = setTimeout(() => this.#abort("it was not ready in time"), STAGE_PATIENCE_MS).unref();
    let isStaged = false;
    let onStaged: () => void = () => {};
    const staged = new Promise<void>((resolve) => {
      onStaged = () => {
        isStaged = true;
        clearTimeout(slow);
        resolve();
      };
    });
    // Before that it may be the network of a try that has failed.
    const onLost = (cause: string): void => (isStaged ? this.#abort(cause) : undefined);
    const hold = { onStaged, onLost, layers };
    this.#making = hooks.make(hold, AbortSignal.any([closing, this.#ending.signal]));
    this.ready = Promise.race([staged, this.#making.then(() => undefined)]);
    this.over = this.#making.then(
      () => undefined,
      () => {
        clearTimeout(slow);
        if (this.#state === "waits") this.#state = "ended";
      },
    );
    // Whoever waits for it is told, ignoring here: nobody may.
    this.ready.catch(() => {});
  }

  async begin(folder: string, signal: AbortSignal): Promise<World> {
    if (this.#state !== "waits")
      throw new WorldUnavailable(`World ${this.id} is ${this.#state}`, "Try again");
    this.#state = "begun";
    const onAbort = (): void => this.#ending.abort(abortError(signal));
    signal.addEventListener("abort", onAbort, { once: true });
    this.#hooks.onLayers(folder);
    try {
      signal.throwIfAborted();
      this.#begin(prepareLayers(folder));
      const world = await this.#making;
      this.#hooks.onWorld(world, folder);
      return world;
    } catch (error) {
      this.#ending.abort(error);
      await this.over;
      await removeLayers(folder).catch(() => {
        // They stay until they are swept, ignoring: why there is no world must not be lost for it.
      });
      this.#hooks.onFailure(folder);
      throw error;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  async end(cause: string): Promise<void> {
    if (this.#state === "waits") {
      this.#state = "ended";
      this.#abort(cause);
    }
    await this.over;
  }

  #abort(cause: string): void {
    if (this.#state !== "begun")
      this.#ending.abort(new WorldUnavailable(`The world was given up: ${cause}`, "Try again"));
  }
}
