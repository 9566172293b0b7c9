/** Held changes of one broker: its layers lie here, each in a folder named by the broker's own. */
import { readdirSync } from "node:fs";
import { readFile, stat, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { ANY_FOLDER, type Held, type HeldStore, type OpenSides } from "../model/held.ts";
import type { World, WorldBackend, WorldSpec } from "../model/world.ts";
import type { Answers } from "../wire/peer.ts";
import type { AgentCalls, Swept } from "../wire/protocol.ts";

export type HeldQuestions = {
  /** Returns the paths that the policy forbids everybody to write. */
  readonly isDenied: (question: number, paths: readonly string[]) => Promise<readonly string[]>;
  /** Returns the spans whose changes a client could still ask for. */
  readonly mayHold: (spans: readonly string[]) => Promise<readonly string[]>;
};

/** The name of a folder of layers, as brokers make it. */
const NAME = /^[A-Za-z0-9_-]{1,128}$/;

/** Beside the layers: the project's device and inode here, where a shared folder has another device than at the broker. */
const IDENTITY = "project-identity";

type HeldAnswers = Pick<
  Answers<AgentCalls>,
  Extract<keyof AgentCalls, `held${string}` | `sides${string}` | "dropHeld" | "expireHeld" | "dropLeft">
>;

export class AgentHeld {
  readonly #backend: WorldBackend;
  readonly #root: string;
  readonly #ask: HeldQuestions;
  readonly #sides = new Map<number, OpenSides>();
  #lastSides = 0;

  constructor(backend: WorldBackend, root: string, ask: HeldQuestions) {
    this.#backend = backend;
    this.#root = root;
    this.#ask = ask;
  }

  /** The folder for a broker's layers. Throws for a path that no broker makes. */
  layers(theirs: string): string {
    const name = basename(theirs);
    if (!NAME.test(name)) throw new RangeError(`'${name}' cannot name the layers of an overlay`);
    return join(this.#root, name);
  }

  /** Keeps which folder the overlay was made of. */
  async remember({ project }: WorldSpec, { spec: { access } }: World): Promise<void> {
    if (access.kind !== "overlay") return;
    const { dev, ino } = await stat(project);
    await writeFile(join(access.layers, IDENTITY), `${dev}:${ino}`, { mode: 0o600 });
  }

  async close(): Promise<void> {
    for (const sides of this.#sides.values()) await sides.close();
    this.#sides.clear();
  }

  answers(): HeldAnswers {
    return {
      dropHeld: async ({ layers }) => {
        const access = { kind: "overlay", layers: this.layers(layers) } as const;
        await this.#backend.dropHeld({ spec: { access } } as World);
        return null;
      },
      expireHeld: async ({ maxAgeMs }) => this.#swept(await this.#backend.expireHeld(this.#root, maxAgeMs)),
      dropLeft: async () => {
        const spans = this.#names();
        const held = new Set(await this.#ask.mayHold(spans));
        // Layers made meanwhile belong to a command.
        const asked = new Set(spans);
        return this.#swept(
          await this.#backend.dropLeft(this.#root, (span) => !asked.has(span) || held.has(span)),
        );
      },
      heldRecover: () => this.#store.recover(this.#root),
      heldLook: async ({ held }, signal) => {
        await this.#store.look(await this.#here(held), signal);
        return null;
      },
      heldList: async ({ held, waiter }, signal) =>
        await this.#store.list(await this.#here(held), signal, waiter),
      heldContent: async ({ held, path, limit }) =>
        await this.#store.content(await this.#here(held), path, limit),
      heldApply: async ({ held, paths, question }, signal) => {
        const here = await this.#here(held);
        const all = (await this.#store.list(here, signal, "operator")).map(({ path }) => path);
        const denied = new Set(await this.#ask.isDenied(question, all));
        const asked = new Set(all);
        return await this.#store.apply(here, paths, (path) => denied.has(path) || !asked.has(path), signal);
      },
      heldUndo: async ({ held, paths }, signal) =>
        await this.#store.undo(await this.#here(held), paths, signal),
      heldDiscard: async ({ held, paths }) => await this.#store.discard(await this.#here(held), paths),
      sidesOpen: async ({ held }) => {
        const opened = await this.#store.sides(await this.#here(held));
        this.#lastSides += 1;
        this.#sides.set(this.#lastSides, opened);
        const isSame = (await opened.identity()) === (await this.#here(held)).identity;
        return { sides: this.#lastSides, identity: isSame ? held.identity : "another" };
      },
      sidesBefore: ({ sides, path }) => this.#opened(sides).before(path),
      sidesAfter: ({ sides, change }) => this.#opened(sides).after(change),
      sidesContent: ({ sides, side, path, limit }) => this.#opened(sides).content(side, path, limit),
      sidesBelow: ({ sides, folder, limit }) => this.#opened(sides).filesBelow(folder, limit),
      sidesClose: async ({ sides }) => {
        await this.#sides.get(sides)?.close();
        this.#sides.delete(sides);
        return null;
      },
    };
  }

  get #store(): HeldStore {
    const { held } = this.#backend;
    if (held === null)
      throw new Error(`The backend '${this.#backend.name}' can neither show nor apply changes`);
    return held;
  }

  #opened(sides: number): OpenSides {
    const found = this.#sides.get(sides);
    if (found === undefined) throw new Error(`No open changes ${sides}`);
    return found;
  }

  /** The same changes by their place here. */
  async #here(held: Held): Promise<Held> {
    const layers = this.layers(held.layers);
    if (held.identity === ANY_FOLDER) return { ...held, layers };
    return { ...held, layers, identity: await readFile(join(layers, IDENTITY), "utf8") };
  }

  #swept(removed: number): Swept {
    return { removed, left: this.#names() };
  }

  #names(): readonly string[] {
    try {
      return readdirSync(this.#root).filter((name) => name.startsWith("spn_"));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw error;
    }
  }
}
