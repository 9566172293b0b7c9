/** Worlds on another machine, behind its world agent. */
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Isolation } from "../schemas/generated/types.ts";
import {
  abortError,
  timeLimit,
  type World,
  type WorldBackend,
  type WorldSpec,
  WorldUnavailable,
} from "../world/backend.ts";
import type { Hears } from "../world/wire/peer.ts";
import { type BrokerTells, BYTES, type Swept, type Welcome } from "../world/wire/protocol.ts";
import { type AgentPlace, connectAgent, openStream, type ToAgent } from "./agent-connection.ts";
import { faultIn } from "./agent-messages.ts";
import { HeldElsewhere } from "./remote-held.ts";
import { RemoteRuns } from "./remote-runs.ts";
import { RemoteWorld } from "./remote-world.ts";

export type RemoteOptions = AgentPlace & {
  /** The backend's name in replies, before the agent's own: `agent:linux`. */
  readonly name: string;
  /** Moves a denied name out of a project on this host, where the project lies too. Returns the new location. */
  readonly takeOut: (path: string) => string;
  /** Called before each connection: makes the agent reachable. Throws {@link WorldUnavailable}. Absent: somebody else does. */
  readonly ready?: (signal: AbortSignal) => Promise<void>;
  /** Called with each world's project, once the agent answers: throws {@link WorldUnavailable} for one that its machine does not show. */
  readonly admits?: (project: string) => void;
  /** How long an agent that took the connection may take to greet. Absent: {@link WELCOME_MS}. */
  readonly welcomeMs?: number;
};

/** A machine that has just started is busy: three seconds were too few for an emulated one. */
const WELCOME_MS = 15_000;

/** How long a lost agent is tried again: one that restarts answers within a second. */
const AGAIN_MS = 3000;
const PAUSE_MS = 100;

type Connected = {
  readonly peer: ToAgent;
  readonly welcome: Welcome;
  readonly runs: RemoteRuns;
  readonly worlds: Set<RemoteWorld>;
  /** Why the connection is gone, for its worlds. */
  loss: string | undefined;
};

/**
 * Connects at the first need, and again after a loss. The agent keeps held changes; an empty folder at their path here stands for each,
 * because the broker lists held changes by the folders in its overlay folder.
 */
export class RemoteBackend implements WorldBackend {
  readonly held: HeldElsewhere;
  readonly #options: RemoteOptions;
  readonly #worlds = new Map<string, RemoteWorld>();
  readonly #closing = new AbortController();
  #connecting: Promise<Connected> | undefined;
  /** The agent's last greeting: it outlives the connection. */
  #welcome: Welcome | undefined;
  #mayHold: (span: string) => boolean = () => true;

  constructor(options: RemoteOptions) {
    this.#options = options;
    this.held = new HeldElsewhere(async () => (await this.#connected()).peer);
  }

  get name(): string {
    const { name } = this.#options;
    return this.#welcome === undefined ? name : `${name}:${this.#welcome.backend}`;
  }

  filterHash(seccomp: WorldSpec["seccomp"]): string | null {
    return this.#welcome?.filters[seccomp] ?? null;
  }

  /** Learns the agent's name and filters, if it answers in time; a later call reports why it does not. */
  async greet(signal: AbortSignal): Promise<void> {
    await inTime(signal, this.#connected()).catch(() => {
      // The agent does not answer, ignoring: the first world reports that.
    });
  }

  async probe(signal: AbortSignal): Promise<Isolation> {
    const { peer } = await inTime(signal, this.#connected());
    return this.#named(await inTime(signal, peer.call("probe", null, signal)));
  }

  async tryOverlay(signal: AbortSignal): Promise<string> {
    const { peer } = await inTime(signal, this.#connected());
    return await inTime(signal, peer.call("tryOverlay", null, signal));
  }

  async start(id: string, asked: WorldSpec, signal: AbortSignal): Promise<World> {
    const spec = withoutSocketsHere(asked);
    if (spec.hostNetwork === true)
      throw new WorldUnavailable(
        "Cannot give a world the host's network (world.isolate_network: false): worlds are on another machine",
        "Remove 'isolate_network: false' from the policy, and list the wanted hosts in net.allowed",
      );
    const until = AbortSignal.any([signal, this.#closing.signal]);
    const connected = await inTime(until, this.#connected());
    this.#options.admits?.(spec.project);
    const { peer, runs, worlds } = connected;
    const { access } = spec;
    if (access.kind === "overlay") await mkdir(access.layers, { recursive: true, mode: 0o700 });
    try {
      const started = await inTime(until, peer.call("start", { id, spec }, until));
      const world = new RemoteWorld(id, spec, started, {
        peer,
        runs,
        stream: (token) => openStream(this.#options, token),
        takeOut: this.#options.takeOut,
        named: (isolation) => this.#named(isolation),
      });
      this.#worlds.set(id, world);
      worlds.add(world);
      void world.ended.then(() => {
        this.#worlds.delete(id);
        worlds.delete(world);
      });
      if (connected.loss !== undefined) world.lose(connected.loss);
      return world;
    } catch (error) {
      if (access.kind === "overlay") await rm(access.layers, { recursive: true, force: true });
      throw error;
    }
  }

  async dropHeld({ spec: { access } }: World): Promise<void> {
    if (access.kind !== "overlay") return;
    const { peer } = await this.#connected();
    await peer.call("dropHeld", { layers: access.layers });
    await rm(access.layers, { recursive: true, force: true });
  }

  async expireHeld(root: string, maxAgeMs: number): Promise<number> {
    return await this.#sweep(root, async (peer) => await peer.call("expireHeld", { maxAgeMs }));
  }

  async dropLeft(root: string, mayHold: (span: string) => boolean): Promise<number> {
    this.#mayHold = mayHold;
    return await this.#sweep(root, async (peer) => await peer.call("dropLeft", null));
  }

  async close(): Promise<void> {
    this.#closing.abort(
      new WorldUnavailable("The broker is stopping", "Try again when the broker runs again"),
    );
    await Promise.all([...this.#worlds.values()].map((world) => world.end("the broker stops")));
    const connected = await this.#connecting?.catch(() => undefined);
    connected?.peer.close("the broker stops");
  }

  /** Removes the folders here of layers that the agent no longer has; those made meanwhile stay. */
  async #sweep(root: string, ask: (peer: ToAgent) => Promise<Swept>): Promise<number> {
    const here = (await readdir(root).catch(() => [])).filter((name) => name.startsWith("spn_"));
    const { removed, left } = await ask((await this.#connected()).peer);
    const there = new Set(left);
    for (const name of here)
      if (!there.has(name)) await rm(join(root, name), { recursive: true, force: true });
    return removed;
  }

  #connected(): Promise<Connected> {
    this.#closing.signal.throwIfAborted();
    this.#connecting ??= this.#connect().catch((error: unknown) => {
      this.#connecting = undefined;
      throw error;
    });
    return this.#connecting;
  }

  async #connect(): Promise<Connected> {
    const runs = new RemoteRuns();
    const side = {
      faultIn,
      answers: {
        ...runs.answers(),
        mayHold: ({ spans }: { readonly spans: readonly string[] }) => spans.filter(this.#mayHold),
        isDenied: this.held.isDenied,
      },
      hears: this.#hears(runs),
      onBytes: (kind: number, id: number, bytes: Buffer) => {
        if (kind !== BYTES.stdout && kind !== BYTES.stderr) throw new RangeError(`Bytes of kind ${kind}`);
        runs.output(id, kind === BYTES.stdout ? "stdout" : "stderr", bytes);
      },
    };
    await this.#options.ready?.(this.#closing.signal);
    const peer = await this.#dial(() => connectAgent(this.#options, side));
    runs.attach(peer);
    const welcome = await this.#greeted(peer);
    this.#welcome = welcome;
    const connected: Connected = { peer, welcome, runs, worlds: new Set(), loss: undefined };
    // From here on: the late end of a connection that was given up must not be taken for the loss of the one after it.
    void peer.lost.then((cause) => {
      this.#connecting = undefined;
      const loss = `the connection to its world agent was lost: ${cause}`;
      connected.loss = loss;
      runs.lose(loss);
      for (const world of connected.worlds) world.lose(loss);
    });
    return connected;
  }

  async #greeted(peer: ToAgent): Promise<Welcome> {
    const { socket, remedy, welcomeMs = WELCOME_MS } = this.#options;
    const patience = timeLimit(welcomeMs, this.#closing.signal);
    try {
      return await peer.call("welcome", null, patience);
    } catch (error) {
      peer.close("it was not greeted");
      if (!patience.aborted || this.#closing.signal.aborted) throw error;
      throw new WorldUnavailable(
        `The world agent on '${socket}' took the connection, and did not answer in ${welcomeMs / 1000} s`,
        remedy,
        { cause: error },
      );
    }
  }

  /** Tries again for a while where an agent answered before: it may be starting again. */
  async #dial(connect: () => Promise<ToAgent>): Promise<ToAgent> {
    const until = performance.now() + (this.#welcome === undefined ? 0 : AGAIN_MS);
    for (;;) {
      try {
        return await connect();
      } catch (error) {
        if (performance.now() >= until) throw error;
        await sleep(PAUSE_MS, undefined, { signal: this.#closing.signal }).catch(() => {
          throw abortError(this.#closing.signal);
        });
      }
    }
  }

  #hears(runs: RemoteRuns): Hears<BrokerTells> {
    return {
      ...runs.hears(),
      isolation: ({ world, isolation }) => this.#worlds.get(world)?.takeIsolation(isolation),
      ended: ({ world, cause }) => this.#worlds.get(world)?.lose(cause),
      captured: ({ world, stream, ...captured }) =>
        this.#worlds.get(world)?.network?.take({ ...captured, socket: openStream(this.#options, stream) }),
      datagram: ({ world, bytes, port, address }) =>
        this.#worlds.get(world)?.network?.takeDatagram(Buffer.from(bytes), { port, address }),
      dnsStream: ({ world, stream }) =>
        this.#worlds.get(world)?.network?.takeDnsStream(openStream(this.#options, stream)),
    };
  }

  #named(isolation: Isolation): Isolation {
    return { ...isolation, backend: this.name };
  }
}

/** Leaves out the sockets at which the broker answers: its machine may show their files to the agent's, and carries no connection. */
function withoutSocketsHere({ sockets = [], ...spec }: WorldSpec): WorldSpec {
  const there = sockets.filter(({ isBrokers = false }) => !isBrokers);
  return there.length === 0 ? spec : { ...spec, sockets: there };
}

/** Waits for an agent no longer than `signal`, also where others wait for the same. Throws {@link WorldUnavailable} when the time is over. */
async function inTime<T>(signal: AbortSignal, answer: Promise<T>): Promise<T> {
  const settled = new AbortController();
  const over = new Promise<never>((_, reject) => {
    const stop = (): void => reject(abortError(signal));
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true, signal: settled.signal });
  });
  try {
    return await Promise.race([answer, over]);
  } catch (error) {
    if (error instanceof WorldUnavailable || !signal.aborted) throw error;
    throw new WorldUnavailable(
      "Cannot make a world: the world agent was not ready in time",
      "Try again when its host is less busy",
      { cause: error },
    );
  } finally {
    settled.abort();
  }
}
