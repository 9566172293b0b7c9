/** What a session's commands leave to the next one: the folder in which the last one ended, and the variables it exported. */
import type { Database, RootDatabase } from "lmdb";
import { BoundedMap } from "../model/bounded-map.ts";
import type { Variables } from "../model/environment.ts";
import type { OnFault } from "../spans/span-index.ts";

/** Sessions whose state is kept. The one not used for longest goes first. */
const MAX_STATES = 256;

/** Most variables of a state, and most bytes of their names and values together. */
export const MAX_VARIABLES = 256;
export const MAX_VARIABLE_BYTES = 32 * 1024;

export type ShellState = {
  /** The folder that the caller named: another one in a later call holds instead of `folder`. */
  readonly caller: string;
  readonly folder: string;
  readonly variables: Variables;
  /** The span of the last prompt in this session. */
  readonly prompt?: string;
};

type Place = Pick<ShellState, "caller" | "folder">;

/** By session id. Folders survive the broker; variables, which may hold credentials, are in memory alone. */
export class ShellStates {
  readonly #states = new BoundedMap<string, ShellState>(MAX_STATES);
  readonly #places: Database<Place, string>;
  readonly #onFault: OnFault;

  constructor(database: RootDatabase, onFault: OnFault) {
    this.#places = database.openDB({ name: "shell-states" });
    this.#onFault = onFault;
  }

  of(session: string): ShellState | undefined {
    const known = this.#states.get(session);
    if (known !== undefined) return known;
    const place = this.#places.get(session);
    return place === undefined ? undefined : { ...place, variables: {} };
  }

  keep(session: string, state: ShellState): void {
    const before = this.of(session);
    this.#states.delete(session);
    this.#states.set(session, state);
    if (before?.folder === state.folder && before.caller === state.caller) return;
    const { caller, folder } = state;
    this.#write(this.#places.put(session, { caller, folder }));
    const [first] = this.#places.getKeys({ limit: 1 });
    // Ids begin with their time, so the first one is the oldest.
    if (this.#places.getKeysCount() > MAX_STATES && first !== undefined)
      this.#write(this.#places.remove(first));
  }

  #write(write: Promise<boolean>): void {
    write.catch((error: unknown) => this.#onFault("Cannot keep the folder of a session", error));
  }
}
