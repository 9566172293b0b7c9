/** A connected broker and its worlds; the agent ends the worlds when the connection closes. */
import { timeLimit } from "../model/time-limit.ts";
import { join } from "node:path";
import { existsSync } from "node:fs";
import type { WebSocket } from "ws";
import type { World, WorldBackend, WorldSpec } from "../model/world.ts";
import { WorldUnavailable } from "../model/unavailable.ts";
import { Peer, type Answers, type Hears } from "../wire/peer.ts";
import {
  type AgentCalls,
  type AgentTells,
  type BrokerCalls,
  type BrokerTells,
  BYTES,
  type Started,
} from "../wire/protocol.ts";
import { AgentHeld } from "./held.ts";
import { AgentNetwork } from "./network.ts";
import { AgentRuns } from "./runs.ts";
import type { Streams } from "./streams.ts";

export type ToBroker = Peer<BrokerCalls, BrokerTells, AgentCalls, AgentTells>;

export type SessionOptions = {
  readonly backend: WorldBackend;
  readonly overlay: string;
  readonly hidden: readonly string[];
  readonly sealed: readonly string[];
  /** The name of the broker's folder below `overlay`. */
  readonly store: string;
  readonly streams: Streams;
};

/** How long the changes and stray writes of a world that has ended can be asked for: a broker asks at once. */
const ASKED_MS = 60_000;

type Kept = { readonly world: World; readonly network: AgentNetwork | undefined; isOver: boolean };

export class Session {
  /** Settles when the connection is gone and all its worlds are; never rejects. */
  readonly over: Promise<void>;
  readonly #options: SessionOptions;
  readonly #peer: ToBroker;
  readonly #worlds = new Map<string, Kept>();
  readonly #runs: AgentRuns;
  readonly #held: AgentHeld;
  readonly #ending = new AbortController();
  #isDraining = false;

  constructor(socket: WebSocket, options: SessionOptions) {
    this.#options = options;
    this.#held = new AgentHeld(options.backend, join(options.overlay, options.store), {
      isDenied: (question, paths) => this.#peer.call("isDenied", { question, paths }),
      mayHold: (spans) => this.#peer.call("mayHold", { spans }),
    });
    this.#peer = new Peer(socket, {
      answers: this.#answers(),
      hears: this.#hears(),
      onBytes: (kind, id, bytes) => {
        if (kind !== BYTES.input) throw new RangeError(`Bytes of kind ${kind}`);
        this.#runs.input(id, bytes);
      },
    });
    this.#runs = new AgentRuns(this.#peer);
    this.over = this.#peer.lost.then((cause) => this.#endAll(cause));
  }

  get worlds(): number {
    return [...this.#worlds.values()].filter(({ isOver }) => !isOver).length;
  }

  close(cause: string): void {
    this.#peer.close(cause);
  }

  /** Ends each world after its last command, all of them when the patience is over. */
  async drain(patienceMs: number): Promise<void> {
    this.#isDraining = true;
    const late = timeLimit(patienceMs);
    await Promise.all(
      [...this.#worlds.values()].map(async ({ world }) => {
        await this.#runs.idle(world, late);
        await world.end("its world agent stops");
      }),
    );
  }

  async #endAll(cause: string): Promise<void> {
    this.#ending.abort(new WorldUnavailable(`The broker is gone: ${cause}`, "Connect again"));
    await this.#held.close();
    await Promise.allSettled(
      [...this.#worlds.values()].map(({ world }) =>
        world.end(`the connection to its broker is gone: ${cause}`),
      ),
    );
  }

  #answers(): Answers<AgentCalls> {
    const { backend } = this.#options;
    const until = (signal: AbortSignal): AbortSignal => AbortSignal.any([signal, this.#ending.signal]);
    return {
      welcome: () => ({
        backend: backend.name,
        filters: { enforce: backend.filterHash("enforce"), log: backend.filterHash("log") },
      }),
      probe: (_, signal) => backend.probe(until(signal)),
      tryOverlay: async (_, signal) =>
        (await backend.tryOverlay?.(until(signal))) ?? (await backend.probe(until(signal))).overlay,
      start: ({ id, spec }, signal) => this.#start(id, spec, until(signal)),
      changes: ({ run }, signal) => this.#runs.changes(run, signal),
      owner: async ({ world, inode }) => {
        const owner = await this.#world(world).ownerOf(inode);
        const run = owner === null ? undefined : this.#runs.numberOf(owner.run);
        return owner === null || run === undefined ? null : { run, pid: owner.pid, program: owner.program };
      },
      processes: ({ world }, signal) => this.#world(world).processes(signal),
      fsDiff: ({ world }, signal) => this.#world(world).fsDiff(signal),
      isSealed: ({ world, path }) => this.#world(world).isSealed(path),
      settle: ({ world, folders, mayBeMore }) => this.#world(world).settle(folders, mayBeMore),
      strays: ({ world }) => this.#world(world).strays(),
      end: async ({ world, cause }) => {
        await this.#worlds.get(world)?.world.end(cause);
        return null;
      },
      allow: async ({ world, rules }) => {
        await this.#network(world).allow(rules);
        this.#runs.tellIsolation(this.#world(world));
        return null;
      },
      flush: async ({ world }) => {
        await this.#network(world).flush();
        return null;
      },
      dial: ({ world, port }) => this.#network(world).dial(port),
      ...this.#held.answers(),
    };
  }

  #hears(): Hears<AgentTells> {
    return {
      exec: (exec) => {
        const world = this.#worlds.get(exec.world)?.world;
        if (world === undefined) this.#runs.lose(exec.run, "it has ended");
        else this.#runs.exec(world, exec);
      },
      grant: ({ run, bytes }) => this.#runs.of(run)?.grant(bytes),
      endInput: ({ run }) => this.#runs.of(run)?.endInput(),
      resize: ({ run, size }) => this.#runs.of(run)?.resize(size),
      interrupt: ({ run, name }) => this.#runs.of(run)?.interrupt(name),
      signal: ({ run, name }) => this.#runs.of(run)?.signal(name),
      kill: ({ run }) => this.#runs.of(run)?.kill(),
      discard: ({ run }) => this.#runs.of(run)?.discard(),
      wait: ({ question, ms }) => this.#runs.wait(question, ms),
      listen: ({ world }) => this.#worlds.get(world)?.network?.listen(),
      takeDns: ({ world }) => this.#worlds.get(world)?.network?.takeDns(),
      closeDns: ({ world }) => this.#worlds.get(world)?.network?.closeDns(),
      datagram: (answer) => this.#worlds.get(answer.world)?.network?.reply(answer),
    };
  }

  async #start(id: string, spec: WorldSpec, signal: AbortSignal): Promise<Started> {
    if (this.#isDraining)
      throw new WorldUnavailable("The world agent is stopping", "Try again when it runs again");
    if (this.#worlds.has(id)) throw new Error(`The world '${id}' exists already`);
    const { backend, hidden, sealed, streams } = this.#options;
    const world = await backend.start(
      id,
      {
        ...spec,
        access:
          spec.access.kind === "overlay"
            ? { kind: "overlay", layers: this.#held.layers(spec.access.layers) }
            : spec.access,
        hidden: [...spec.hidden, ...hidden.filter((path) => existsSync(path))],
        sealed: [...spec.sealed, ...sealed],
      },
      signal,
    );
    const network =
      world.network === null ? undefined : new AgentNetwork(this.#peer, id, world.network, streams);
    const kept = { world, network, isOver: false };
    this.#worlds.set(id, kept);
    void world.ended.then((cause) => {
      kept.isOver = true;
      network?.closeDns();
      this.#peer.tell("ended", { world: id, cause });
      setTimeout(() => this.#worlds.delete(id), ASKED_MS).unref();
    });
    if (signal.aborted) await world.end("nobody waits for it");
    await this.#held.remember(spec, world);
    return {
      mountedAt: world.mountedAt,
      isolation: world.isolation,
      pid: world.pid,
      limits: world.limits,
      mounts: world.mounts,
      hasNetwork: network !== undefined,
      telemetry: world.telemetry ?? null,
    };
  }

  #world(id: string): World {
    const kept = this.#worlds.get(id);
    if (kept === undefined) throw new WorldUnavailable(`The world '${id}' has ended`, "Try again");
    return kept.world;
  }

  #network(id: string): AgentNetwork {
    const network = this.#worlds.get(id)?.network;
    if (network === undefined) throw new WorldUnavailable(`The network of '${id}' is gone`, "Try again");
    return network;
  }
}
