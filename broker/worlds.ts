/** The worlds of this broker: one warm world for each session, shared by its commands and ended when idle. */
import {
  type World,
  type WorldBackend,
  type WorldProcess,
  type WorldSpec,
  WorldUnavailable,
} from "../world/backend.ts";
import { newId } from "./ids.ts";

type Warm = {
  readonly session: string;
  readonly spec: WorldSpec;
  readonly world: Promise<World>;
  readonly startedAt: string;
  users: number;
  idle: NodeJS.Timeout | undefined;
};

/** A world is ready in some 20 ms; a host under load may take a hundred times as long. */
const START_PATIENCE_MS = 15_000;

/** How many warm worlds a broker holds at once: each label of each project is one more. */
const MAX_WARM = 512;

/** A world lent to one command; `held` says that changes in its overlay are to be kept. */
export type Lease = { readonly world: World; readonly release: (held: boolean) => void };

/** A warm world as it is listed. */
export type WarmWorld = {
  readonly session: string;
  readonly world: World;
  readonly startedAt: string;
  /** Commands running in it. */
  readonly running: number;
};

/** A world that was ended for an operator; `session` is null for that of one command alone. */
export type EndedWarm = {
  readonly session: string | null;
  readonly world: World;
  readonly commands: number;
  readonly processes: readonly WorldProcess[];
};

export class Worlds {
  readonly #backend: WorldBackend;
  readonly #idleMs: () => number;
  readonly #warm = new Map<string, Warm>();
  readonly #retired = new Set<Warm>();
  /** Worlds of one command alone. */
  readonly #fresh = new Set<World>();

  constructor(backend: WorldBackend, idleMs: () => number) {
    this.#backend = backend;
    this.#idleMs = idleMs;
  }

  /**
   * The session's world, started if it is not warm or has another spec than the policy asks for now; the old one
   * ends when its last command has. Throws `WorldUnavailable`.
   */
  async lease(session: string, spec: WorldSpec): Promise<Lease> {
    const known = this.#warm.get(session);
    if (known !== undefined && !isSameSpec(known.spec, spec)) this.#retire(session, known);
    const warm = this.#warm.get(session) ?? this.#start(session, spec);
    warm.users += 1;
    clearTimeout(warm.idle);
    try {
      const world = await warm.world;
      return { world, release: () => this.#release(session, warm) };
    } catch (error) {
      warm.users -= 1;
      throw error;
    }
  }

  /** A world for one command alone; releasing it ends it. Throws `WorldUnavailable`. */
  async leaseFresh(spec: WorldSpec): Promise<Lease> {
    const world = await this.#backend.start(newId("wld"), spec, AbortSignal.timeout(START_PATIENCE_MS));
    this.#fresh.add(world);
    return {
      world,
      release: (held) => {
        this.#fresh.delete(world);
        const over = world.end("its command has ended");
        if (held) return;
        over
          .then(() => this.#backend.dropHeld(world))
          .catch(() => {
            // Layers that resist stay, ignoring: they expire with their age.
          });
      },
    };
  }

  /** The warm worlds by session. */
  async all(): Promise<readonly WarmWorld[]> {
    const entries = [...this.#warm].map(async ([session, { world, startedAt, users }]) => ({
      session,
      world: await world,
      startedAt,
      running: users,
    }));
    const settled = await Promise.allSettled(entries);
    return settled.flatMap((entry) => (entry.status === "fulfilled" ? [entry.value] : []));
  }

  /** Whether the session's world is there, or being made. */
  isWarm(session: string): boolean {
    return this.#warm.has(session);
  }

  /** How many commands run in a session's worlds; without a session, in all worlds. */
  running(session?: string): number {
    const shared = this.#of(session).reduce((sum, warm) => sum + warm.users, 0);
    return session === undefined ? shared + this.#fresh.size : shared;
  }

  /**
   * Ends a session's worlds with all that runs in them, retired ones too; without a session, every world. A command
   * that comes meanwhile gets a new world. What was inside is listed before it is ended.
   */
  async restart(session: string | undefined, cause: string): Promise<readonly EndedWarm[]> {
    const ended = this.#of(session).map(async (warm) => {
      if (this.#warm.get(warm.session) === warm) this.#warm.delete(warm.session);
      clearTimeout(warm.idle);
      // It never started, ignoring: whoever asked for it was told.
      const world = await warm.world.catch(() => undefined);
      return world === undefined ? [] : [await endListed(warm.session, world, warm.users, cause)];
    });
    const alone = session === undefined ? [...this.#fresh] : [];
    const fresh = alone.map(async (world) => [await endListed(null, world, 1, cause)]);
    return (await Promise.all([...ended, ...fresh])).flat();
  }

  #of(session: string | undefined): readonly Warm[] {
    const all = [...this.#warm.values(), ...this.#retired];
    return session === undefined ? all : all.filter((warm) => warm.session === session);
  }

  /** Not bound to the first command's life: others may be waiting for the same world. */
  #start(session: string, spec: WorldSpec): Warm {
    if (this.#warm.size >= MAX_WARM) {
      throw new WorldUnavailable(
        `There are ${MAX_WARM} warm worlds already`,
        "Wait until some are idle, or use fewer names for agents",
      );
    }
    const world = this.#backend.start(newId("wld"), spec, AbortSignal.timeout(START_PATIENCE_MS));
    const startedAt = new Date().toISOString();
    const warm: Warm = { session, spec, world, startedAt, users: 0, idle: undefined };
    this.#warm.set(session, warm);
    void warm.world.then(
      (world) => world.ended.then(() => this.#forget(session, warm)),
      () => this.#forget(session, warm),
    );
    return warm;
  }

  #release(session: string, warm: Warm): void {
    warm.users -= 1;
    if (warm.users > 0) return;
    if (this.#warm.get(session) !== warm) return this.#end(warm, "its policy has changed");
    this.#watchIdle(session, warm);
  }

  /** A world with kept processes is in use, although no command runs in it. */
  async #endIfIdle(session: string, warm: Warm): Promise<void> {
    const world = await warm.world;
    const kept = await world.processes(AbortSignal.timeout(5000)).catch(() => []);
    if (warm.users > 0) return;
    if (kept.length === 0) {
      this.#forget(session, warm);
      return this.#end(warm, "it was idle");
    }
    this.#watchIdle(session, warm);
  }

  #watchIdle(session: string, warm: Warm): void {
    clearTimeout(warm.idle);
    warm.idle = setTimeout(() => void this.#endIfIdle(session, warm), this.#idleMs());
    warm.idle.unref();
  }

  #retire(session: string, warm: Warm): void {
    this.#warm.delete(session);
    clearTimeout(warm.idle);
    if (warm.users === 0) this.#end(warm, "its policy has changed");
    else this.#retired.add(warm);
  }

  #end(warm: Warm, cause: string): void {
    this.#retired.delete(warm);
    void warm.world.then(
      (world) => world.end(cause),
      () => {
        // It never started, ignoring: whoever asked for it was told.
      },
    );
  }

  #forget(session: string, warm: Warm): void {
    clearTimeout(warm.idle);
    this.#retired.delete(warm);
    if (this.#warm.get(session) === warm) this.#warm.delete(session);
  }
}

const LIST_PATIENCE_MS = 5000;

/** A world that does not answer is ended all the same. */
async function endListed(
  session: string | null,
  world: World,
  commands: number,
  cause: string,
): Promise<EndedWarm> {
  const processes = await world.processes(AbortSignal.timeout(LIST_PATIENCE_MS)).catch(() => []);
  await world.end(cause);
  return { session, world, commands, processes };
}

/** Specs of one policy and project are one object most of the time. */
function isSameSpec(one: WorldSpec, other: WorldSpec): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
