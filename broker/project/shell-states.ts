/** What a session's commands leave to the next one: the folder in which the last one ended, and the variables it exported. */
import type { Database, RootDatabase } from "lmdb";
import { AgentQuota } from "../model/agent-quota.ts";
import type { Variables } from "../model/environment.ts";
import type { Session } from "../model/place.ts";
import type { OnFault } from "../spans/span-index.ts";

/** Sessions whose variables are kept, of an agent and of all labels. The one not used for longest goes first. */
const MOST = { ofAgent: 128, ofLabels: 512 };

/** Most variables of a state, and most bytes of their names and values together. */
export const MAX_VARIABLES = 256;
export const MAX_VARIABLE_BYTES = 32 * 1024;

export type ShellState = {
  /** The folder that the caller named: another one in a later call holds instead of `folder`. */
  readonly caller: string;
  readonly folder: string;
  readonly variables: Variables;
  /** There were variables, which are kept no longer. */
  readonly lost?: true;
};

type Stored = Pick<ShellState, "caller" | "folder"> & { readonly exports: boolean };

/** By session id. Folders stay as long as the session; variables, which may hold credentials, are in memory alone. */
export class ShellStates {
  readonly #states = new Map<string, ShellState>();
  readonly #quota: AgentQuota;
  readonly #places: Database<Stored, string>;
  readonly #onFault: OnFault;

  constructor(database: RootDatabase, onFault: OnFault, isLabel: (agent: string) => boolean) {
    this.#quota = new AgentQuota(MOST, isLabel);
    this.#places = database.openDB({ name: "shell-states" });
    this.#onFault = onFault;
  }

  of(session: string): ShellState | undefined {
    const known = this.#states.get(session);
    if (known !== undefined) return known;
    const stored = this.#places.get(session);
    if (stored === undefined) return undefined;
    const { caller, folder, exports } = stored;
    return { caller, folder, variables: {}, ...(exports ? { lost: true } : {}) };
  }

  keep({ id, agent }: Session, { caller, folder, variables }: ShellState): void {
    const before = this.of(id);
    this.#states.set(id, { caller, folder, variables });
    const gone = this.#quota.use(id, agent);
    if (gone !== undefined) this.#states.delete(gone);
    const exports = Object.keys(variables).length > 0;
    const had = before?.lost === true || Object.keys(before?.variables ?? {}).length > 0;
    if (before?.folder === folder && before.caller === caller && had === exports) return;
    this.#write(this.#places.put(id, { caller, folder, exports }));
  }

  /** Forgets a session that has gone. */
  forget(session: string): void {
    this.#quota.drop(session);
    this.#states.delete(session);
    this.#write(this.#places.remove(session));
  }

  #write(write: Promise<boolean>): void {
    write.catch((error: unknown) => this.#onFault("Cannot keep the folder of a session", error));
  }
}
