/**
 * Worlds for isolated commands, made before they are asked for: all but the overlay of the project, which is mounted when
 * there is a command. Each is for one command alone, as every isolated command's world, and nothing has run in it before.
 */
import type { PreparedWorld, World, WorldBackend, WorldSpec } from "../../world/backend.ts";
import { newId } from "../model/ids.ts";
import { isSame, type Wanted } from "./wanted.ts";

/**
 * How long after an isolated command has ended the next one's world is made: Node's spawn holds the whole broker up for some
 * milliseconds, and the reply of the command, or the next plain one, should not wait for that.
 */
const REFILL_MS = 20;

/** A command that still runs then does not wait for what a spawn holds up, and the next may come as soon as it has ended. */
const LONG_MS = 200;

/** Of all sessions together: each is two processes that sleep. The one that waits longest makes room. */
const MAX_SPARES = 8;

/**
 * How long one waits at most: what a new world looks at on the host (links, names that wildcards match) is that old when its
 * command comes.
 */
const MAX_AGE_MS = 300_000;

/** How long one that a command has asked for may take. */
const BEGIN_PATIENCE_MS = 15_000;

type Spare = {
  readonly wanted: Wanted;
  readonly world: PreparedWorld;
  /** Ends it when nobody has come for it. */
  readonly expiry: NodeJS.Timeout;
};

/** At most one for each session, from its first isolated command on. */
export class SpareWorlds {
  readonly #backend: WorldBackend;
  readonly #idleMs: () => number;
  /** The one that waits longest first. */
  readonly #spares = new Map<string, Spare>();
  readonly #refills = new Map<string, NodeJS.Timeout>();

  constructor(backend: WorldBackend, idleMs: () => number) {
    this.#backend = backend;
    this.#idleMs = idleMs;
  }

  /**
   * The session's spare as a world over the layers that are wanted, and nobody else gets it. Undefined when there is none,
   * when it was made by other words, or when it cannot be finished: one that is made at once says why.
   */
  async begin(session: string, wanted: Wanted): Promise<World | undefined> {
    const { access } = wanted.spec;
    const spare = this.#spares.get(session);
    if (spare === undefined || access.kind !== "overlay") return undefined;
    this.#forget(session, spare);
    if (!isLike(spare.wanted, wanted)) {
      void spare.world.end("its policy has changed");
      return undefined;
    }
    try {
      await spare.world.ready;
      return await spare.world.begin(access.layers, AbortSignal.timeout(BEGIN_PATIENCE_MS));
    } catch {
      // The world that is made instead says why that fails, ignoring.
      return undefined;
    }
  }

  /** The session will want another one: its command has begun, or has ended. */
  refill(session: string, wanted: Wanted, since: "begun" | "ended"): void {
    if (wanted.spec.access.kind !== "overlay") return;
    clearTimeout(this.#refills.get(session));
    const timer = setTimeout(
      () => {
        this.#refills.delete(session);
        this.#make(session, wanted);
      },
      since === "ended" ? REFILL_MS : LONG_MS,
    );
    this.#refills.set(session, timer.unref());
  }

  /** Ends what waits for commands of a session, or of any, and settles when it is gone. */
  async end(session: string | undefined, cause: string): Promise<void> {
    const sessions = session === undefined ? [...this.#refills.keys(), ...this.#spares.keys()] : [session];
    await Promise.all(sessions.map((each) => this.#end(each, cause)));
  }

  #make(session: string, wanted: Wanted): void {
    const known = this.#spares.get(session);
    if (known !== undefined && isLike(known.wanted, wanted)) return;
    if (known !== undefined) void this.#end(session, "its policy has changed");
    const [longest] = this.#spares.keys();
    if (longest !== undefined && this.#spares.size >= MAX_SPARES)
      void this.#end(longest, "others are wanted");
    const { network, settings } = wanted;
    const spec: WorldSpec = { ...wanted.spec, network, settings };
    const world = this.#backend.prepare(newId("wld"), spec);
    if (world === null) return;
    const expiry = setTimeout(
      () => void this.#end(session, "it was idle"),
      Math.min(this.#idleMs(), MAX_AGE_MS),
    ).unref();
    const spare = { wanted, world, expiry };
    this.#spares.set(session, spare);
    void world.over.then(() => this.#forget(session, spare));
  }

  async #end(session: string, cause: string): Promise<void> {
    clearTimeout(this.#refills.get(session));
    this.#refills.delete(session);
    const spare = this.#spares.get(session);
    if (spare === undefined) return;
    this.#forget(session, spare);
    await spare.world.end(cause);
  }

  #forget(session: string, spare: Spare): void {
    clearTimeout(spare.expiry);
    if (this.#spares.get(session) === spare) this.#spares.delete(session);
  }
}

/** Whether the two are one but for where the layers lie. Nothing has run in a spare: whose it was to be does not matter. */
function isLike(one: Wanted, other: Wanted): boolean {
  const { access, ...spec } = one.spec;
  const { access: otherAccess, ...otherSpec } = other.spec;
  // Those of one policy and project share their lists, which are all that is long.
  const { files, ...rest } = spec;
  const { files: otherFiles, ...otherRest } = otherSpec;
  return (
    access.kind === otherAccess.kind &&
    isSame(files, otherFiles) &&
    isSame(rest, otherRest) &&
    isSame(one.network, other.network) &&
    isSame(one.settings, other.settings)
  );
}
