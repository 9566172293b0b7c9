/** The broker's worlds: one warm world per session, shared by its commands and ended when idle. */
import { basename } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  timeLimit,
  type World,
  type WorldBackend,
  type WorldProcess,
  WorldUnavailable,
} from "../../world/backend.ts";
import { BoundedMap } from "../model/bounded-map.ts";
import { newId } from "../model/ids.ts";
import { isSame, type Wanted } from "./world-spec.ts";

type Warm = {
  readonly session: string;
  /** The agent; one name for all agents without a socket of their own, whose names cost nothing. */
  readonly owner: string;
  /** See {@link keyOf}. */
  readonly key: string;
  readonly wanted: Wanted;
  readonly world: Promise<World>;
  readonly startedAt: string;
  hash: string;
  users: number;
  /** Whether the world was lent before. */
  used: boolean;
  idle: NodeJS.Timeout | undefined;
  /** Whether the network's rules can be changed; a world without a network keeps its initial rules. */
  follows: boolean;
};

/** Time-out for starting a world. A world takes some 20 ms; a host under load may take a hundred times as long. */
const START_PATIENCE_MS = 15_000;

/** Bound on warm worlds: each label in each project gets its own world. */
const MAX_WARM = 512;

/** A world lent to a command; `held`: whether to keep the overlay's changes. `first`: whether no command ran there before. */
export type Lease = {
  readonly world: World;
  readonly release: (held: boolean) => void;
  readonly first: boolean;
  /** A sentence about the kept processes that ended with the session's former world. */
  readonly lost?: string;
};

/** A warm world for listings. */
export type WarmWorld = {
  readonly session: string;
  readonly world: World;
  readonly startedAt: string;
  /** Number of running commands. */
  readonly running: number;
};

/** Why a world ended that the next command of its session could not use. */
const CHANGED = "its policy has changed, or a session has begun in another folder";

export class Worlds {
  readonly #backend: WorldBackend;
  readonly #idleMs: () => number;
  readonly #warm = new Map<string, Warm>();
  readonly #retired = new Set<Warm>();
  /** Worlds of single commands. */
  readonly #fresh = new Set<World>();
  /** What ended with a session's former world, for its next command. */
  readonly #lost = new BoundedMap<string, Promise<string | undefined>>(MAX_WARM);
  readonly #onGone: ((session: string) => void)[] = [];
  readonly #most: number;
  /** Ending overlays of single commands. */
  readonly ending = new EndingLayers();

  constructor(backend: WorldBackend, idleMs: () => number, most = MAX_WARM) {
    this.#backend = backend;
    this.#idleMs = idleMs;
    this.#most = most;
  }

  /**
   * Leases the session's world. Starts a world if none is warm, or if the policy now needs another spec; the old world then ends
   * after its last command. Throws `WorldUnavailable`.
   */
  async lease(session: string, wanted: Wanted, owner: () => string): Promise<Lease> {
    const known = this.#warm.get(keyOf(session, wanted));
    const warm =
      known !== undefined && serves(known, wanted) ? known : this.#start(session, wanted, owner, known);
    warm.hash = wanted.hash;
    warm.users += 1;
    clearTimeout(warm.idle);
    try {
      const world = await warm.world;
      const first = !warm.used;
      warm.used = true;
      const lost = await this.#takeLost(warm.key);
      return { world, release: () => this.#release(warm), first, ...(lost === undefined ? {} : { lost }) };
    } catch (error) {
      warm.users -= 1;
      throw error;
    }
  }

  /** Leases a world for a single command; releasing ends the world. Throws `WorldUnavailable`. */
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
          // Layers that cannot be removed stay, ignoring: they expire with their age.
        });
      },
    };
  }

  /** Lists the warm worlds. */
  async all(): Promise<readonly WarmWorld[]> {
    const entries = [...this.#warm.values()].map(async ({ session, world, startedAt, users }) => ({
      session,
      world: await world,
      startedAt,
      running: users,
    }));
    const settled = await Promise.allSettled(entries);
    return settled.flatMap((entry) => (entry.status === "fulfilled" ? [entry.value] : []));
  }

  /**
   * Returns the world that a session's ports lead to: one with a home of its own while a command runs there (a whole program),
   * else the world of the next command. Undefined without a world, existing or starting.
   */
  current(session: string): Promise<World> | undefined {
    const all = [...this.#warm.values()].filter((warm) => warm.session === session);
    const running = all.find(({ wanted, users }) => wanted.spec.ownHome !== undefined && users > 0);
    return (running ?? this.#warm.get(session) ?? all[0])?.world;
  }

  /** Calls `listener` for each session whose world has ended without a successor. */
  onGone(listener: (session: string) => void): void {
    this.#onGone.push(listener);
  }

  /** Whether the session has a world with the user's home, existing or starting. */
  isWarm(session: string): boolean {
    return this.#warm.has(session);
  }

  /** Counts commands running in a session's worlds; without a session, in all worlds. */
  running(session?: string): number {
    const shared = this.#of(session).reduce((sum, warm) => sum + warm.users, 0);
    return session === undefined ? shared + this.#fresh.size : shared;
  }

  /**
   * Ends a session's worlds with all their processes, retired worlds included; without a session, every world. Commands arriving
   * meanwhile get a new world. The processes are listed before the end.
   */
  async restart(session: string | undefined, cause: string): Promise<readonly EndedWarm[]> {
    const ended = this.#of(session).map(async (warm) => {
      if (this.#warm.get(warm.key) === warm) this.#warm.delete(warm.key);
      clearTimeout(warm.idle);
      // The world never started, ignoring: its caller got the error.
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

  /** Starts a world independently of the first command's lifetime: other commands may wait for the same world. */
  #start(session: string, wanted: Wanted, owner: () => string, before: Warm | undefined): Warm {
    const staleGone = this.#endStale(wanted);
    const key = keyOf(session, wanted);
    if (before !== undefined && this.#warm.get(key) === before) this.#retire(before, CHANGED);
    if (this.#warm.size >= this.#most && !this.#evict()) {
      throw new WorldUnavailable(
        `Cannot start another world: ${this.#most} worlds are warm already`,
        "Wait until some worlds are idle, or use fewer agent names",
      );
    }
    const world = staleGone.then(() => this.#make(wanted));
    const begun = { startedAt: new Date().toISOString(), hash: wanted.hash, users: 0, used: false };
    const warm: Warm = {
      session,
      owner: owner(),
      key,
      wanted,
      world,
      ...begun,
      idle: undefined,
      follows: true,
    };
    this.#warm.set(key, warm);
    void warm.world.then(
      (world) => {
        warm.follows = world.network !== null;
        return world.ended.then(() => this.#forget(warm));
      },
      () => this.#forget(warm),
    );
    return warm;
  }

  /**
   * Ends the oldest world without a running command, of the owner that has most such worlds, with the processes that were kept there:
   * one agent's kept processes in hundreds of folders must not keep every other from a world. False: all run a command.
   */
  #evict(): boolean {
    const unused = new Map<string, Warm[]>();
    for (const warm of this.#warm.values())
      if (warm.users === 0) unused.set(warm.owner, [...(unused.get(warm.owner) ?? []), warm]);
    const [[oldest] = []] = [...unused.values()].sort((one, other) => other.length - one.length);
    if (oldest === undefined) return false;
    this.#retire(oldest, "another world needed its room");
    return true;
  }

  /**
   * Ends the worlds of an earlier folder at the project's path: no command may get such a world again, and git's settings in the
   * new folder cannot be sealed there. Resolves after their end; never rejects.
   */
  async #endStale({ spec }: Wanted): Promise<void> {
    const stale = [...this.#warm.values()].filter(
      ({ wanted }) => wanted.spec.project === spec.project && wanted.spec.identity !== spec.identity,
    );
    const gone = stale.map(async (warm) => {
      this.#retire(warm, "its project was replaced by another folder");
      // A world with a running command ends after that command; the caller does not wait for it.
      if (warm.users === 0) await (await warm.world).ended;
    });
    // A world that never started needs no end; its requester has the error already.
    await Promise.allSettled(gone);
  }

  #make({ spec, network, settings }: Wanted): Promise<World> {
    const patience = timeLimit(START_PATIENCE_MS);
    return this.#backend.start(newId("wld"), { ...spec, network, settings }, patience);
  }

  #release(warm: Warm): void {
    warm.users -= 1;
    if (warm.users > 0) return;
    if (this.#warm.get(warm.key) !== warm) return this.#endWithKept(warm, CHANGED);
    this.#watchIdle(warm);
  }

  /** Ends a warm world unless in use. A world with kept processes is in use, although no command runs there. */
  async #endIfIdle(warm: Warm): Promise<void> {
    const world = await warm.world;
    const kept = await world.processes(timeLimit(5000)).catch(() => []);
    if (warm.users > 0) return;
    if (kept.length === 0) {
      this.#forget(warm);
      return this.#end(warm, "it was idle");
    }
    this.#watchIdle(warm);
  }

  #watchIdle(warm: Warm): void {
    clearTimeout(warm.idle);
    warm.idle = setTimeout(() => void this.#endIfIdle(warm), this.#idleMs());
    warm.idle.unref();
  }

  #retire(warm: Warm, cause: string): void {
    this.#warm.delete(warm.key);
    clearTimeout(warm.idle);
    if (warm.users === 0) this.#endWithKept(warm, cause);
    else this.#retired.add(warm);
  }

  /** Ends a world whose kept processes nobody asked to end. */
  #endWithKept(warm: Warm, cause: string): void {
    this.#retired.delete(warm);
    const lost = warm.world.then(async (world) =>
      lostWords(await endListed(warm.session, world, 0, cause), cause),
    );
    // The world never started, ignoring: its caller got the error.
    this.#lost.set(
      warm.key,
      lost.catch(() => undefined),
    );
  }

  async #takeLost(key: string): Promise<string | undefined> {
    const lost = this.#lost.get(key);
    if (lost === undefined) return undefined;
    const words = await Promise.race([lost, sleep(LOST_PATIENCE_MS, null, { ref: false })]);
    // A world that takes long to end is told of later.
    if (words === null) return undefined;
    if (this.#lost.get(key) === lost) this.#lost.delete(key);
    return words;
  }

  #end(warm: Warm, cause: string): void {
    this.#retired.delete(warm);
    void warm.world.then(
      (world) => world.end(cause),
      () => {
        // The world never started, ignoring: its caller got the error.
      },
    );
  }

  #forget(warm: Warm): void {
    clearTimeout(warm.idle);
    this.#retired.delete(warm);
    if (this.#warm.get(warm.key) === warm) this.#warm.delete(warm.key);
    if (this.current(warm.session) === undefined) for (const tell of this.#onGone) tell(warm.session);
  }
}

/** A session has one warm world with the user's home, and one for each home of its own: neither makes the other cold. */
function keyOf(session: string, { spec: { ownHome } }: Wanted): string {
  return ownHome === undefined ? session : `${session} ${ownHome.folder}`;
}

function serves({ wanted: made, hash, follows }: Warm, wanted: Wanted): boolean {
  if (made.under !== wanted.under) return false;
  if (hash !== wanted.hash && !isSame(made.settings, wanted.settings)) return false;
  return isSame(made.spec, wanted.spec) && (follows || isSame(made.network, wanted.network));
}

/**
 * Overlays of ending worlds: until the end the overlay is mounted, and its layers must not be touched. Layers dropped with their
 * world stay in this set until removed.
 */
class EndingLayers {
  readonly #ending = new Map<string, Promise<void>>();

  /** Adds an ending world; `over` settles after its end and the removal of layers without held changes. Returns `over`. */
  follow({ spec: { access } }: World, over: Promise<void>): Promise<void> {
    if (access.kind !== "overlay") return over;
    // A failed end blocks no waiting caller, ignoring: the caller that ended the world gets the error.
    const gone = over.catch(() => {}).finally(() => this.#ending.delete(access.layers));
    this.#ending.set(access.layers, gone);
    return over;
  }

  /** Waits for an ending world; resolves at once without one. */
  async untilGone(layers: string): Promise<void> {
    await this.#ending.get(layers);
  }
}

/** A world ended for an operator; `session` is null for the world of a single command. */
export type EndedWarm = {
  readonly session: string | null;
  readonly world: World;
  readonly commands: number;
  readonly processes: readonly WorldProcess[];
};

const LIST_PATIENCE_MS = 5000;

/** How long a command waits for what ended with its session's former world. */
const LOST_PATIENCE_MS = 1000;

/** Lists a world's processes and ends the world, even when it does not answer. */
async function endListed(
  session: string | null,
  world: World,
  commands: number,
  cause: string,
): Promise<EndedWarm> {
  const processes = await world.processes(timeLimit(LIST_PATIENCE_MS)).catch(() => []);
  await world.end(cause);
  return { session, world, commands, processes };
}

/** Programs that the sentence about ended processes names. */
const MOST_NAMED = 5;

/** Names programs without their arguments, which may hold secrets. */
function lostWords({ processes }: EndedWarm, cause: string): string | undefined {
  if (processes.length === 0) return undefined;
  const programs = [...new Set(processes.map(({ argv }) => basename(argv.split(" ")[0] ?? "")))];
  const more = programs.length > MOST_NAMED ? ", …" : "";
  const were = processes.length === 1 ? "1 process that was" : `${processes.length} processes that were`;
  const names = `${programs.slice(0, MOST_NAMED).join(", ")}${more}`;
  return `${were} kept in this session's world ended with it, because ${cause}: ${names}`;
}
