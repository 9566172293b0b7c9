/**
 * Decides which marks (`.git`, `.substrate-profile`) count. A command can create a mark inside its project, and a call with that
 * folder as `cwd` would then follow other rules, because `$PROJECT` would be a smaller folder. So only marks present at a
 * project's first use count; a later mark counts once a person has used the folder or config.yaml names it. File times are no
 * evidence: a rename or a hard link gives a new mark an old time.
 */
import { createHash } from "node:crypto";
import { statSync } from "node:fs";
import { dirname } from "node:path";
import type { Database, RootDatabase } from "lmdb";
import { type MarkedBelow, markedBelow } from "./marked-below.ts";
import type { OnFault } from "../spans/span-index.ts";

/** A folder used as the project of a call. */
type Used = MarkedBelow & {
  readonly project: string;
  /** Device and inode. */
  readonly identity: string;
  /** Order of the projects' first uses. */
  readonly order: number;
  /** Whether a person worked there, through the operator's socket. */
  readonly byPerson: boolean;
};

export class Marks {
  readonly #kept: Database<Used, string>;
  readonly #onFault: OnFault;
  readonly #used = new Map<string, Used>();

  constructor(database: RootDatabase, onFault: OnFault) {
    this.#onFault = onFault;
    this.#kept = database.openDB({ name: "marks" });
    for (const { value } of this.#kept.getRange()) this.#used.set(value.project, value);
  }

  /** Notes the use of a project before its command runs. The first use scans the project's folders once, for up to 0.1 s. */
  use(project: string, identity: string, byPerson: boolean): void {
    const known = this.#known(project, identity);
    if (known !== undefined && (known.byPerson || !byPerson)) return;
    const used = known ?? { ...markedBelow(project), project, identity, order: this.#next() };
    this.#keep({ ...used, byPerson });
  }

  /** Whether the mark in a folder (a real path) makes the folder a project. */
  counts(folder: string): boolean {
    const above = this.#above(folder);
    if (above.length === 0) return true;
    const own = this.#known(folder, identityAt(folder));
    if (own?.byPerson === true) return true;
    return above.every(
      ({ marked, order }) => marked.includes(folder) || (own !== undefined && own.order < order),
    );
  }

  /**
   * Returns the marks below a project at its first use, and projects used there by a person since; undefined for a folder never
   * used.
   */
  below(project: string, identity: string): MarkedBelow | undefined {
    const used = this.#known(project, identity);
    if (used === undefined) return undefined;
    const later = [...this.#used.values()].filter((each) => each.byPerson && isBelow(each.project, project));
    return { ...used, marked: [...used.marked, ...later.map((each) => each.project)] };
  }

  /** Whether a folder is, or lies in, a used project. */
  isInUsed(folder: string): boolean {
    return this.#used.has(folder) || this.#above(folder).length > 0;
  }

  /** Whether a person used the folder as a project, through the operator's socket. */
  isUsedByPerson(project: string, identity: string): boolean {
    return this.#known(project, identity)?.byPerson === true;
  }

  #above(folder: string): readonly Used[] {
    const found: Used[] = [];
    for (let at = dirname(folder); at !== dirname(at); at = dirname(at)) {
      const used = this.#used.get(at);
      if (used !== undefined && used.identity === identityAt(at)) found.push(used);
    }
    return found;
  }

  #known(project: string, identity: string): Used | undefined {
    const used = this.#used.get(project);
    return used?.identity === identity ? used : undefined;
  }

  #next(): number {
    return Math.max(0, ...[...this.#used.values()].map(({ order }) => order)) + 1;
  }

  #keep(used: Used): void {
    this.#used.set(used.project, used);
    this.#kept
      .put(databaseKey(used.project), used)
      .catch((error: unknown) => this.#onFault("Cannot keep the mark of a project", error));
  }
}

/** Hashes a key of any length: LMDB keys have at most 1,978 bytes, paths up to 4,096. */
export function databaseKey(path: string): string {
  return createHash("sha256").update(path).digest("hex");
}

function identityAt(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? "gone" : `${stat.dev}:${stat.ino}`;
}

function isBelow(path: string, folder: string): boolean {
  return path !== folder && path.startsWith(folder === "/" ? "/" : `${folder}/`);
}
