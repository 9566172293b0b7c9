/** Decides which touched names are changed, by looking at each name and at the content of moved folders. */
import { type BigIntStats, lstatSync, readdirSync, type Stats } from "node:fs";
import { rawPath, shownPath } from "../overlay/names.ts";
import { type ChangeKind, changeKind } from "../overlay/tree-hash.ts";
import { isAtOrBelow, originOf, targetsOf } from "./moves.ts";
import { type Now, nowOf } from "./now.ts";
import { type Before, HOW, type Touched } from "./touched.ts";
import type { TimeSlices } from "./time-slices.ts";

export type DirectChange = {
  /** Relative to the project, one letter per byte. */
  readonly path: string;
  readonly kind: ChangeKind;
  /** Undefined: removed. */
  readonly now: Now | undefined;
};

export type Compared = {
  readonly changes: readonly DirectChange[];
  /** Everything that could not be compared, as text. */
  readonly gaps: readonly string[];
};

/** Bound of names in moved folders; the same as init's bound per command. */
const MAX_MOVED = 200_000;

/**
 * Compares touched names with the present files. `root` is the project's path, one letter per byte. Follows no link below the
 * root. Throws the errors of `turns`.
 */
export async function compare(root: string, touched: Touched, turns: TimeSlices): Promise<Compared> {
  const comparison = new Comparison(root, touched, turns);
  await comparison.complete();
  return await comparison.run();
}

class Comparison {
  readonly #root: string;
  readonly #touched: Touched;
  readonly #turns: TimeSlices;
  /** Whether a folder's path now consists of folders only. */
  readonly #real = new Map<string, boolean>([["", true]]);
  readonly #changes: DirectChange[] = [];
  /** By missing folder: the topmost missing folder above, or the folder itself. */
  readonly #missing = new Map<string, string>();
  #moved = 0;
  #unseen = 0;

  constructor(root: string, touched: Touched, turns: TimeSlices) {
    this.#root = root;
    this.#touched = touched;
    this.#turns = turns;
  }

  /** Adds the names inside moved folders. */
  async complete(): Promise<void> {
    for (const folder of targetsOf(this.#touched.moves)) await this.#walk(folder);
    for (const path of this.#touched.taken)
      if (!this.#touched.before.has(path)) this.#touched.before.set(path, undefined);
  }

  async run(): Promise<Compared> {
    for (const [path, before] of this.#touched.before) {
      const passed = this.#turns.next();
      if (passed !== undefined) await passed;
      this.#trying(() => this.#look(path, before));
    }
    return { changes: this.#changes, gaps: this.#gaps() };
  }

  #gaps(): readonly string[] {
    const lost = this.#lost();
    return [
      ...(this.#moved > MAX_MOVED
        ? [`folders with more than ${MAX_MOVED} names were moved, and not all are listed`]
        : []),
      ...(this.#unseen > 0 ? [`${this.#unseen} paths can no longer be read`] : []),
      ...(lost === undefined
        ? []
        : [`another program moved or removed '${shownPath(lost)}', which had changes inside`]),
    ];
  }

  /** Returns a missing folder, moved or with changes inside, that the command did not remove itself. */
  #lost(): string | undefined {
    const { before, moves } = this.#touched;
    const folders = new Set([...targetsOf(moves), ...[...before.keys()].map(parentOf)]);
    for (const folder of folders) {
      const missing = this.#trying(() => this.#topMissing(folder));
      if (missing !== undefined && !this.#tookAway(missing)) return missing;
    }
    return undefined;
  }

  #topMissing(folder: string): string | undefined {
    if (this.#isReal(folder)) return undefined;
    const known = this.#missing.get(folder);
    if (known !== undefined) return known;
    const missing = this.#topMissing(parentOf(folder)) ?? folder;
    this.#missing.set(folder, missing);
    return missing;
  }

  #tookAway(folder: string): boolean {
    const { how, moves } = this.#touched;
    if (((how.get(folder) ?? 0) & HOW.removed) !== 0) return true;
    return moves.some(
      ({ from, to, exchanged }) => isAtOrBelow(folder, from) || (exchanged && isAtOrBelow(folder, to)),
    );
  }

  /** Adds the content of a moved folder, under its earlier names. */
  async #walk(folder: string): Promise<void> {
    for (const name of this.#trying(() => this.#names(folder)) ?? []) {
      await this.#turns.next();
      const path = `${folder}/${name}`;
      const origin = originOf(path, this.#touched.moves);
      if (origin === path) continue;
      this.#moved += 1;
      if (this.#moved > MAX_MOVED) return;
      const now = this.#trying(() => this.#exact(path));
      if (now === undefined) continue;
      const { before, taken } = this.#touched;
      if (origin !== undefined && !before.has(origin)) before.set(origin, asBefore(now));
      taken.add(path);
      if (now.isDirectory()) await this.#walk(path);
    }
  }

  #look(path: string, before: Before | undefined): void {
    // Performance: BigInt stats double the cost of a look, and only names that existed before are compared by them.
    const stats = before === undefined ? this.#now(path) : this.#exact(path);
    const how = this.#touched.how.get(path) ?? HOW.name;
    const now = stats === undefined ? undefined : nowOf(stats);
    const kind = changeKind(before?.mode, now?.mode, () => isSame(how, before, stats));
    if (kind !== undefined) this.#changes.push({ path, kind, now });
  }

  /** Counts errors as unseen: a path that is too long, or a folder without search permission. */
  #trying<T>(look: () => T): T | undefined {
    try {
      return look();
    } catch (error) {
      if (!(error instanceof Error && "errno" in error)) throw error;
      this.#unseen += 1;
      return undefined;
    }
  }

  #names(folder: string): readonly string[] {
    if (!this.#isReal(folder)) return [];
    return readdirSync(rawPath(`${this.#root}/${folder}`), { encoding: "latin1" });
  }

  #now(path: string): Stats | undefined {
    if (!this.#isReal(parentOf(path))) return undefined;
    return lstatSync(rawPath(`${this.#root}/${path}`), { throwIfNoEntry: false });
  }

  #exact(path: string): BigIntStats | undefined {
    if (!this.#isReal(parentOf(path))) return undefined;
    return lstatSync(rawPath(`${this.#root}/${path}`), { bigint: true, throwIfNoEntry: false });
  }

  /** Whether the path has no link in place of a folder: below a link, nothing belongs to the project. */
  #isReal(folder: string): boolean {
    const known = this.#real.get(folder);
    if (known !== undefined) return known;
    const real = this.#isReal(parentOf(folder)) && this.#now(folder)?.isDirectory() === true;
    this.#real.set(folder, real);
    return real;
  }
}

/**
 * Compares two states with the same type and mode. A replacement may have the inode number of the removed file, and mtime can be
 * set: then only ctime differs.
 */
function isSame(how: number, before: Before | undefined, now: Stats | BigIntStats | undefined): boolean {
  if (before === undefined || now === undefined || !("mtimeNs" in now)) return false;
  const content = before.inode === now.ino && before.size === now.size && before.mtime === now.mtimeNs;
  return content && ((how & (HOW.write | HOW.name)) === 0 || before.ctime === now.ctimeNs);
}

function asBefore(now: BigIntStats): Before {
  return { mode: Number(now.mode), size: now.size, inode: now.ino, mtime: now.mtimeNs, ctime: now.ctimeNs };
}

function parentOf(path: string): string {
  const slash = path.lastIndexOf("/");
  return slash < 0 ? "" : path.slice(0, slash);
}
