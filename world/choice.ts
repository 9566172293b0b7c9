import type { Isolation } from "../schemas/generated/types.ts";
import type { BackendChoice, RefusedBackend, World, WorldBackend, WorldSpec } from "./model/world.ts";
import type { HeldStore } from "./model/held.ts";
import { WorldUnavailable } from "./model/unavailable.ts";

/** A backend to try, in order of preference. */
export type Candidate = {
  readonly backend: WorldBackend;
  /** Whether the failure rules out this backend on the host, so that the next candidate is tried. Any other failure is final. */
  readonly yields: (error: WorldUnavailable) => boolean;
};

type Chosen = { readonly backend: WorldBackend; readonly isolation: Isolation };

/**
 * Uses the first backend that can make a world on this host. Candidates are tried at the first world or probe; the choice holds
 * for the broker's life. If no backend works, the next request tries again.
 */
export class FirstThatWorks implements WorldBackend {
  readonly #candidates: readonly Candidate[];
  readonly #onChoice: (choice: BackendChoice) => void;
  readonly #closing = new AbortController();
  #choosing: Promise<Chosen> | undefined;
  #chosen: Chosen | undefined;

  constructor(candidates: readonly Candidate[], onChoice: (choice: BackendChoice) => void) {
    this.#candidates = candidates;
    this.#onChoice = onChoice;
  }

  get name(): string {
    return this.#chosen?.backend.name ?? "none yet";
  }

  /** Before a choice: the first candidate's store, for a new broker to recover interrupted applies. */
  get held(): HeldStore | null {
    return this.#any().held;
  }

  /** The same for all candidates: their init loads the same filter, however it is started. */
  filterHash(seccomp: WorldSpec["seccomp"]): string | null {
    return this.#any().filterHash(seccomp);
  }

  async probe(signal: AbortSignal): Promise<Isolation> {
    return (await this.#choose(signal)).isolation;
  }

  async tryOverlay(signal: AbortSignal): Promise<string> {
    const { backend, isolation } = await this.#choose(signal);
    return (await backend.tryOverlay?.(signal)) ?? isolation.overlay;
  }

  async start(id: string, spec: WorldSpec, signal: AbortSignal): Promise<World> {
    const chosen = this.#chosen ?? (await this.#choose(signal));
    return await chosen.backend.start(id, spec, signal);
  }

  dropHeld(world: World): Promise<void> {
    return this.#any().dropHeld(world);
  }

  /** Works before a choice too: no world lives then, and all candidates keep held changes in the same folders. */
  expireHeld(root: string, maxAgeMs: number): Promise<number> {
    return this.#any().expireHeld(root, maxAgeMs);
  }

  dropLeft(root: string, mayHold: (span: string) => boolean): Promise<number> {
    return this.#any().dropLeft(root, mayHold);
  }

  async close(): Promise<void> {
    this.#closing.abort(
      new WorldUnavailable("The broker is stopping", "Try again when the broker runs again"),
    );
    await Promise.allSettled([this.#choosing]);
    await Promise.all(this.#candidates.map(({ backend }) => backend.close()));
  }

  /** Runs one search at a time; callers joining a search share the first caller's time limit. */
  #choose(signal: AbortSignal): Promise<Chosen> {
    this.#choosing ??= this.#search(AbortSignal.any([signal, this.#closing.signal])).catch(
      (error: unknown) => {
        this.#choosing = undefined;
        throw error;
      },
    );
    return this.#choosing;
  }

  async #search(signal: AbortSignal): Promise<Chosen> {
    const refused: RefusedBackend[] = [];
    for (const { backend, yields } of this.#candidates) {
      try {
        const isolation = await backend.probe(signal);
        this.#chosen = { backend, isolation };
        this.#onChoice({ backend: backend.name, refused });
        return this.#chosen;
      } catch (error) {
        // A host that was only too slow must not get another isolation until the broker restarts.
        if (!(error instanceof WorldUnavailable) || signal.aborted || !yields(error)) throw error;
        refused.push({ backend: backend.name, message: error.message, hint: error.hint });
      }
    }
    throw noneWorks(refused);
  }

  #any(): WorldBackend {
    const backend = this.#chosen?.backend ?? this.#candidates[0]?.backend;
    if (backend === undefined) throw new Error("Cannot choose a backend: the list is empty");
    return backend;
  }
}

/** Lists each backend's failure, and each distinct hint once. */
function noneWorks(refused: readonly RefusedBackend[]): WorldUnavailable {
  const [only] = refused;
  if (refused.length === 1 && only !== undefined) return new WorldUnavailable(only.message, only.hint);
  const failures = refused.map(({ backend, message }) => `${backend}: ${message}`);
  return new WorldUnavailable(
    `Cannot make a world on this host. ${failures.join("; ")}`,
    [...new Set(refused.map(({ hint }) => hint))].join(". Or: "),
  );
}
