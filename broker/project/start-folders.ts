/**
 * Folders of a project in which agents' sessions began: agents and editors read settings there as in the project's own folder, so
 * what `fs.deny_write` keeps from commands by name at the top is kept from them there, too. Stored, because a session outlives the broker.
 */
import type { Database, RootDatabase } from "lmdb";
import { isWithin } from "../policy/files/path-denials.ts";
import type { OnFault } from "../spans/span-index.ts";
import { databaseKey } from "./marks.ts";

/** Of a project; the first one goes first. */
const MOST = 16;

export class StartFolders {
  readonly #stored: Database<readonly string[], string>;
  readonly #onFault: OnFault;
  /** LMDB returns a write only after its commit. */
  readonly #noted = new Map<string, readonly string[]>();

  constructor(database: RootDatabase, onFault: OnFault) {
    this.#stored = database.openDB({ name: "start-folders" });
    this.#onFault = onFault;
    for (const { key, value } of this.#stored.getRange()) this.#noted.set(key, value);
  }

  /** `folder`: a real path. The project itself needs no note. */
  note(project: string, folder: string): void {
    if (folder === project || !isWithin(folder, project)) return;
    const known = this.of(project);
    if (known.includes(folder)) return;
    const key = databaseKey(project);
    const folders = [...known, folder].slice(-MOST);
    this.#noted.set(key, folders);
    this.#stored
      .put(key, folders)
      .catch((error: unknown) => this.#onFault("Cannot keep where a session began", error));
  }

  of(project: string): readonly string[] {
    return this.#noted.get(databaseKey(project)) ?? [];
  }
}
