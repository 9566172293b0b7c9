/**
 * Which marks (`.git`, `.substrate-profile`) count. A command can make one in the project it works in, and whoever names that
 * folder as `cwd` would be under other rules: `$PROJECT` would be a smaller folder. So what stood below a project when it was
 * first used counts, and what turned up later does not, until a person has used that folder or config.yaml names it. Times say
 * nothing here: a rename or a hard link gives a new mark an old time.
 */
import { createHash } from "node:crypto";
import { statSync } from "node:fs";
import { dirname } from "node:path";
import type { Database, RootDatabase } from "lmdb";
import { type MarkedBelow, markedBelow } from "./marked-below.ts";
import type { OnFault } from "../spans/span-index.ts";

/** A folder that was the project of a call. */
type Used = MarkedBelow & {
  readonly project: string;
  /** Device and inode. */
  readonly identity: string;
  /** In which order projects were first used. */
  readonly order: number;
  /** A person worked in it, by the operator's socket. */
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

  /** Called before a call's command runs. Looks through the folders of a project at its first use: up to 0.1 s, once. */
  use(project: string, identity: string, byPerson: boolean): void {
    const known = this.#known(project, identity);
    if (known !== undefined && (known.byPerson || !byPerson)) return;
    const used = known ?? { ...markedBelow(project), project, identity, order: this.#next() };
    this.#keep({ ...used, byPerson });
  }

  /** Whether the mark in a folder says that it is a project. A real path. */
  counts(folder: string): boolean {
    const above = this.#above(folder);
    if (above.length === 0) return true;
    const own = this.#known(folder, identityAt(folder));
    if (own?.byPerson === true) return true;
    return above.every(
      ({ marked, order }) => marked.includes(folder) || (own !== undefined && own.order < order),
    );
  }

  /** What stood below a project when it was first used, and what a person used there since; undefined when it never was one. */
  below(project: string, identity: string): MarkedBelow | undefined {
    const used = this.#known(project, identity);
    if (used === undefined) return undefined;
    const later = [...this.#used.values()].filter((each) => each.byPerson && isBelow(each.project, project));
    return { ...used, marked: [...used.marked, ...later.map((each) => each.project)] };
  }

  /** Whether a folder is, or lies in, one that was a project. */
  isInUsed(folder: string): boolean {
    return this.#used.has(folder) || this.#above(folder).length > 0;
  }

  /** Whether a person worked in a folder as a project, by the operator's socket. */
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
      .catch((error: unknown) => this.#onFault("What is a project's own cannot be kept", error));
  }
}

/** LMDB keys end at 1,978 bytes and paths at 4,096: the hash always fits. */
function databaseKey(path: string): string {
  return createHash("sha256").update(path).digest("hex");
}

function identityAt(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? "gone" : `${stat.dev}:${stat.ino}`;
}

function isBelow(path: string, folder: string): boolean {
  return path !== folder && path.startsWith(folder === "/" ? "/" : `${folder}/`);
}
