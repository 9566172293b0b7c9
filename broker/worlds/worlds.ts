/** The worlds of this broker: one warm world for each session, shared by its commands and ended when idle. */
import { type World, type WorldBackend, type WorldProcess, WorldUnavailable } from "../../world/backend.ts";
import { newId } from "../model/ids.ts";
import { isSame, type Wanted } from "./world-spec.ts";

type Warm = {
  readonly session: string;
  readonly wanted: Wanted;
  readonly world: Promise<World>;
  readonly startedAt: string;
  hash: string;
  users: number;
  /** It was lent before. */
  used: boolean;
  idle: NodeJS.Timeout | undefined;
  /** Its network takes other rules; a world that got none is what it was made as. */
  follows: boolean;
};

/** A world is ready in some 20 ms; a host under load may take a hundred times as long. */
const START_PATIENCE_MS = 15_000;

/** How many warm worlds a broker holds at once: each label of each project is one more. */
const MAX_WARM = 512;

/** A world lent to one command; `held` says that changes in its overlay are to be kept. `first`: nothing ran in it before. */
export type Lease = {
  readonly world: World;
  readonly release: (held: boolean) => void;
  readonly first: boolean;
};

/** A warm world as it is listed. */
export type WarmWorld = {
  readonly session: string;
  readonly world: World;
  readonly startedAt: string;
  /** Commands running in it. */
  readonly running: number;
};

export class Worlds {
  readonly #backend: WorldBackend;
  readonly #idleMs: () => number;
  readonly #warm = new Map<string, Warm>();
  readonly #retired = new Set<Warm>();
  /** Worlds of one command alone. */
  readonly #fresh = new Set<World>();
  readonly #onGone: ((session: string) => void)[] = [];
  /** Of what was for one command alone. */
  readonly ending = new EndingLayers();

  constructor(backend: WorldBackend, idleMs: () => number) {
    this.#backend = backend;
    this.#idleMs = idleMs;
  }

  /**
   * The session's world, started if it is not warm or has another spec than the policy asks for now; the old one
   * ends when its last command has. Throws `WorldUnavailable`.
   */
  async lease(session: string, wanted: Wanted): Promise<Lease> {
    const known = this.#warm.get(session);
    const warm = known !== undefined && serves(known, wanted) ? known : this.#start(session, wanted, known);
    warm.hash = wanted.hash;
    warm.users += 1;
    clearTimeout(warm.idle);
    try {
      const world = await warm.world;
      const first = !warm.used;
      warm.used = true;
      return { world, release: () => this.#release(session, warm), first };
    } catch (error) {
      warm.users -= 1;
      throw error;
    }
  }

  /** A world for one command alone; releasing it ends it. Throws `WorldUnavailable`. */
  async leaseFresh(wanted: Wanted): Promise<Lease> {
    const world = await this.#make(wanted);
    this.#fresh.add(world);
    return {
      world,
      first: true,
      release: (held) => {
        this.#fresh.delete(world);
        const ended = world.end("its command has ended");
        // A call about these changes waits for the removal too: half-removed layers can be neither listed nor applied.
        const over = held ? ended : ended.then(() => this.#backend.dropHeld(world));
        this.ending.follow(world, over).catch(() => {
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

  /** The session's world as the next command gets it; undefined when none is there or being made. */
  current(session: string): Promise<World> | undefined {
    return this.#warm.get(session)?.world;
  }

  /** `listener` is told of each session whose world is gone and has no successor. */
  onGone(listener: (session: string) => void): void {
    this.#onGone.push(listener);
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
  #start(session: string, wanted: Wanted, before: Warm | undefined): Warm {
    const staleGone = this.#endStale(wanted);
    if (before !== undefined && this.#warm.get(session) === before)
      this.#retire(session, before, "its policy has changed");
    if (this.#warm.size >= MAX_WARM) {
      throw new WorldUnavailable(
        `There are ${MAX_WARM} warm worlds already`,
        "Wait until some are idle, or use fewer names for agents",
      );
    }
    const world = staleGone.then(() => this.#make(wanted));
    const begun = { startedAt: new Date().toISOString(), hash: wanted.hash, users: 0, used: false };
    const warm: Warm = { session, wanted, world, ...begun, idle: undefined, follows: true };
    this.#warm.set(session, warm);
    void warm.world.then(
      (world) => {
        warm.follows = world.network !== null;
        return world.ended.then(() => this.#forget(session, warm));
      },
      () => this.#forget(session, warm),
    );
    return warm;
  }

  /**
   * Ends the worlds of what was this project before another folder came to stand there: no command gets one of them again, and git's
   * settings in the new folder could not be sealed in them. Resolves when they are gone, and never rejects.
   */
  async #endStale({ spec }: Wanted): Promise<void> {
    const stale = [...this.#warm].filter(
      ([, { wanted }]) => wanted.spec.project === spec.project && wanted.spec.identity !== spec.identity,
    );
    const gone = stale.map(async ([session, warm]) => {
      this.#retire(session, warm, "another folder stands where its project was");
      // A world with a running command ends after that command; the caller does not wait for it.
      if (warm.users === 0) await (await warm.world).ended;
    });
    // A world that never started needs no end; its requester has the error already.
    await Promise.allSettled(gone);
  }

  #make({ spec, network, settings }: Wanted): Promise<World> {
    const patience = AbortSignal.timeout(START_PATIENCE_MS);
    return this.#backend.start(newId("wld"), { ...spec, network, settings }, patience);
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

  #retire(session: string, warm: Warm, cause: string): void {
    this.#warm.delete(session);
    clearTimeout(warm.idle);
    if (warm.users === 0) this.#end(warm, cause);
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
    if (!this.#warm.has(session)) for (const tell of this.#onGone) tell(session);
  }
}

function serves({ wanted: made, hash, follows }: Warm, wanted: Wanted): boolean {
  if (made.under !== wanted.under) return false;
  if (hash !== wanted.hash && !isSame(made.settings, wanted.settings)) return false;
  return isSame(made.spec, wanted.spec) && (follows || isSame(made.network, wanted.network));
}

/**
 * Overlays whose worlds are ending: until a world is gone its overlay is mounted, and nobody may touch its layers. Layers that are
 * dropped with their world are ending until they are removed.
 */
class EndingLayers {
  readonly #ending = new Map<string, Promise<void>>();

  /** Notes a world that was asked to end; `over` is its end, with the removal of layers that nobody holds, and is returned. */
  follow({ spec: { access } }: World, over: Promise<void>): Promise<void> {
    if (access.kind !== "overlay") return over;
    // One that cannot end keeps nobody waiting, ignoring: who ended it hears of it.
    const gone = over.catch(() => {}).finally(() => this.#ending.delete(access.layers));
    this.#ending.set(access.layers, gone);
    return over;
  }

  /** At once where no world is ending. */
  async untilGone(layers: string): Promise<void> {
    await this.#ending.get(layers);
  }
}

/** A world that was ended for an operator; `session` is null for that of one command alone. */
export type EndedWarm = {
  readonly session: string | null;
  readonly world: World;
  readonly commands: number;
  readonly processes: readonly WorldProcess[];
};

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
