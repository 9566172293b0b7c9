/** Held changes whose layers lie at a world agent. */
import type { ApplyEnding, Held, HeldChange, HeldStore, OpenSides, Waiter } from "../world/backend.ts";
import type { Answers } from "../world/wire/peer.ts";
import type { AgentCalls, BrokerCalls } from "../world/wire/protocol.ts";
import type { ToAgent } from "./agent-connection.ts";

export class HeldElsewhere implements HeldStore {
  readonly #peer: () => Promise<ToAgent>;
  /** Use count by layers. */
  readonly #used = new Map<string, number>();
  /** What running applies ask of the policy. */
  readonly #denials = new Map<number, (path: string) => boolean>();
  #questions = 0;

  constructor(peer: () => Promise<ToAgent>) {
    this.#peer = peer;
  }

  isInUse(layers: string): boolean {
    return this.#used.has(layers);
  }

  /** An unknown apply is denied everything. */
  readonly isDenied: Answers<BrokerCalls>["isDenied"] = ({ question, paths }) => {
    const isDenied = this.#denials.get(question);
    return isDenied === undefined ? paths : paths.filter(isDenied);
  };

  async look(held: Held, signal: AbortSignal): Promise<void> {
    await this.#call("heldLook", held, { held }, signal);
  }

  list(held: Held, signal: AbortSignal, waiter: Waiter): Promise<readonly HeldChange[]> {
    return this.#call("heldList", held, { held, waiter }, signal);
  }

  content(held: Held, path: string, limit: number): Promise<AgentCalls["heldContent"]["answers"]> {
    return this.#call("heldContent", held, { held, path, limit });
  }

  async apply(
    held: Held,
    paths: readonly string[] | null,
    isDenied: (path: string) => boolean,
    signal: AbortSignal,
  ): Promise<ApplyEnding> {
    this.#questions += 1;
    const question = this.#questions;
    this.#denials.set(question, isDenied);
    try {
      return await this.#call("heldApply", held, { held, paths, question }, signal);
    } finally {
      this.#denials.delete(question);
    }
  }

  undo(held: Held, paths: readonly string[] | null, signal: AbortSignal): Promise<ApplyEnding> {
    return this.#call("heldUndo", held, { held, paths }, signal);
  }

  discard(held: Held, paths: readonly string[] | null): Promise<ApplyEnding> {
    return this.#call("heldDiscard", held, { held, paths });
  }

  async recover(): Promise<AgentCalls["heldRecover"]["answers"]> {
    return await (await this.#peer()).call("heldRecover", null);
  }

  async sides(held: Held): Promise<OpenSides> {
    const peer = await this.#peer();
    const { sides, identity } = await peer.call("sidesOpen", { held });
    return {
      identity: () => Promise.resolve(identity),
      before: (path) => peer.call("sidesBefore", { sides, path }),
      after: ({ path, kind }) => peer.call("sidesAfter", { sides, change: { path, kind } }),
      content: (side, path, limit) => peer.call("sidesContent", { sides, side, path, limit }),
      filesBelow: (folder, limit) => peer.call("sidesBelow", { sides, folder, limit }),
      close: async () => {
        await peer.call("sidesClose", { sides });
      },
    };
  }

  async #call<Name extends keyof AgentCalls>(
    name: Name,
    { layers }: Held,
    asks: AgentCalls[Name]["asks"],
    signal?: AbortSignal,
  ): Promise<AgentCalls[Name]["answers"]> {
    this.#used.set(layers, (this.#used.get(layers) ?? 0) + 1);
    try {
      return await (await this.#peer()).call(name, asks, signal);
    } finally {
      const left = (this.#used.get(layers) ?? 1) - 1;
      if (left === 0) this.#used.delete(layers);
      else this.#used.set(layers, left);
    }
  }
}
