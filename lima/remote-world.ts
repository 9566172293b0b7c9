/** A world behind a world agent. */
import type { FsDiff, Isolation } from "../schemas/generated/types.ts";
import {
  type CommandRun,
  type ExecRequest,
  NO_CHANGES,
  type Settled,
  type SocketOwner,
  type Strayed,
  type World,
  type WorldProcess,
  type WorldSpec,
  WorldUnavailable,
} from "../world/backend.ts";
import type { Started } from "../world/wire/protocol.ts";
import type { StreamSocket } from "../world/wire/stream-socket.ts";
import type { ToAgent } from "./agent-connection.ts";
import { belowProject, inProject, OutOfProject } from "./agent-messages.ts";
import { RemoteNetwork } from "./remote-network.ts";
import type { RemoteRuns } from "./remote-runs.ts";

export type Reached = {
  readonly peer: ToAgent;
  readonly runs: RemoteRuns;
  /** Opens a connection of the world by its token. */
  readonly stream: (token: string) => StreamSocket;
  readonly takeOut: (path: string) => string;
  /** Puts the backend's name at this host into a vector. */
  readonly named: (isolation: Isolation) => Isolation;
};

export class RemoteWorld implements World {
  readonly id: string;
  readonly spec: WorldSpec;
  readonly mountedAt: bigint | null;
  readonly pid: number;
  readonly limits: Readonly<Record<string, string>>;
  readonly mounts: readonly string[];
  readonly ended: Promise<string>;
  readonly network: RemoteNetwork | null;
  readonly telemetry: World["telemetry"];
  readonly #reached: Reached;
  #isolation: Isolation;
  #loss: string | undefined;
  #end: (cause: string) => void = () => {};

  constructor(id: string, spec: WorldSpec, started: Started, reached: Reached) {
    this.id = id;
    this.spec = spec;
    this.mountedAt = started.mountedAt;
    this.pid = started.pid;
    this.limits = started.limits;
    this.mounts = started.mounts;
    this.telemetry = started.telemetry ?? undefined;
    this.#reached = reached;
    this.#isolation = reached.named(started.isolation);
    this.network = started.hasNetwork ? new RemoteNetwork(id, reached.peer, reached.stream) : null;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  get isolation(): Isolation {
    return this.#isolation;
  }

  takeIsolation(isolation: Isolation): void {
    this.#isolation = this.#reached.named(isolation);
  }

  /** The world has ended, or nobody hears of it any more. */
  lose(cause: string): void {
    if (this.#loss !== undefined) return;
    this.#loss = cause;
    this.network?.close(cause);
    this.#end(cause);
  }

  exec(request: ExecRequest): CommandRun {
    return this.#reached.runs.exec(this.id, this.spec, request, this.#loss);
  }

  async ownerOf(inode: number): Promise<SocketOwner | null> {
    if (inode === 0 || this.#loss !== undefined) return null;
    const { peer, runs } = this.#reached;
    // The agent is gone, ignoring: nobody knows the owner then.
    const owner = await peer.call("owner", { world: this.id, inode }).catch(() => null);
    const run = owner === null ? undefined : runs.of(owner.run);
    return owner === null || run === undefined ? null : { run, pid: owner.pid, program: owner.program };
  }

  async processes(signal: AbortSignal): Promise<readonly WorldProcess[]> {
    if (this.#loss !== undefined) return [];
    return await this.#reached.peer.call("processes", { world: this.id }, signal);
  }

  /** Without an agent the changes stay held: a later connection can list them. */
  async fsDiff(signal: AbortSignal): Promise<FsDiff> {
    try {
      return belowProject(await this.#reached.peer.call("fsDiff", { world: this.id }, signal));
    } catch (error) {
      if (!this.#distrust(error) && (signal.aborted || !(error instanceof WorldUnavailable))) throw error;
      return { ...NO_CHANGES, held: true, truncated: true, summary: `not known yet: ${messageOf(error)}` };
    }
  }

  /** Ends the connection to an agent that tells of places out of the project; returns whether it does. */
  #distrust(error: unknown): boolean {
    if (!(error instanceof OutOfProject)) return false;
    this.#reached.peer.close(error.message);
    return true;
  }

  takeOut(path: string): string {
    return this.#reached.takeOut(path);
  }

  async isSealed(path: string): Promise<boolean> {
    // No answer is no seal: the content is judged then.
    return await this.#reached.peer.call("isSealed", { world: this.id, path }).catch(() => false);
  }

  async settle(folders: readonly string[], mayBeMore: boolean): Promise<Settled> {
    const nothing = { sealed: [], unsealed: [] };
    if (this.#loss !== undefined) return nothing;
    // An agent that is gone has ended the world's processes: none can change a folder.
    try {
      const settled = await this.#reached.peer.call("settle", { world: this.id, folders, mayBeMore });
      const paths = [...settled.sealed, ...settled.unsealed.map(({ folder }) => folder)];
      for (const path of paths) inProject(this.spec, path);
      return settled;
    } catch (error) {
      this.#distrust(error);
      return nothing;
    }
  }

  async strays(): Promise<Strayed> {
    return await this.#reached.peer.call("strays", { world: this.id }).catch(() => ({ paths: [], count: 0 }));
  }

  async end(cause: string): Promise<void> {
    if (this.#loss === undefined)
      await this.#reached.peer.call("end", { world: this.id, cause }).catch(() => {
        // The connection is gone, ignoring: the agent then ends the world by itself.
      });
    this.lose(cause);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
