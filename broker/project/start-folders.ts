/**
 * Folders in which agents' sessions began: agents and editors read settings there as in a project's own folder, so what `fs.deny_write`
 * keeps from a project's commands by name at the top is kept from them there, too. Stored, because a session outlives the broker.
 */
import type { Database, RootDatabase } from "lmdb";
import { BoundedMap } from "../model/bounded-map.ts";
import { isWithin } from "../policy/files/path-denials.ts";
import type { OnFault } from "../spans/span-index.ts";
import { databaseKey } from "./marks.ts";

/** Folders that are kept; the one in which no session has begun for longest is evicted. */
const MOST = 1000;

/** Folders of them that hold in one project: a world denies the names of settings in each. */
const MOST_IN_PROJECT = 32;

/** Deeper folders are not noted: a world denies the names in each folder on the way up, too. */
const MOST_NAMES = 64;

/** Projects whose folders are kept at hand. */
const MOST_PROJECTS = 1000;

type Noted = { readonly folder: string; readonly at: number };

export class StartFolders {
  readonly #stored: Database<Noted, string>;
  readonly #onFault: OnFault;
  /** The last one noted comes last. */
  readonly #folders = new Set<string>();
  readonly #below = new BoundedMap<string, readonly string[]>(MOST_PROJECTS);
  #last: string | undefined;

  constructor(database: RootDatabase, onFault: OnFault) {
    this.#stored = database.openDB({ name: "session-folders" });
    this.#onFault = onFault;
    const all = [...this.#stored.getRange().map(({ value }) => value)];
    for (const { folder } of all.sort((one, other) => one.at - other.at)) this.#folders.add(folder);
  }

  /** `folder`: a real path, also of a project: it may lie in another one, as a worktree or a nested repository does. */
  note(folder: string): void {
    if (folder === this.#last || folder.split("/").length > MOST_NAMES) return;
    this.#last = folder;
    this.#below.clear();
    this.#folders.delete(folder);
    this.#folders.add(folder);
    this.#write(this.#stored.put(databaseKey(folder), { folder, at: Date.now() }));
    const [oldest] = this.#folders;
    if (oldest === undefined || this.#folders.size <= MOST) return;
    this.#folders.delete(oldest);
    this.#write(this.#stored.remove(databaseKey(oldest)));
  }

  /** The folders below a project, sorted. */
  of(project: string): readonly string[] {
    const known = this.#below.get(project);
    if (known !== undefined) return known;
    const below = [...this.#folders].filter((folder) => folder !== project && isWithin(folder, project));
    const folders = below.slice(-MOST_IN_PROJECT).sort();
    this.#below.set(project, folders);
    return folders;
  }

  #write(write: Promise<boolean>): void {
    write.catch((error: unknown) => this.#onFault("Cannot keep where a session began", error));
  }
}
