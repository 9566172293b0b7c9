/** Which of the names that were touched are changed: a look at each of them, and at what came along with moved folders. */
import { type BigIntStats, lstatSync, readdirSync, type Stats } from "node:fs";
import { rawPath } from "../overlay/names.ts";
import { type ChangeKind, changeKind } from "../overlay/tree-hash.ts";
import { originOf, targetsOf } from "./moves.ts";
import { type Before, HOW, type Touched } from "./touched.ts";
import type { Turns } from "./turns.ts";

export type DirectChange = {
  /** Relative to the project, one letter for each byte. */
  readonly path: string;
  readonly kind: ChangeKind;
  /** Undefined: it is gone. */
  readonly now: Stats | BigIntStats | undefined;
};

export type Compared = {
  readonly changes: readonly DirectChange[];
  /** What could not be compared, in words. */
  readonly gaps: readonly string[];
};

/** Names in folders that were moved; as many as init tells of one command. */
const MAX_MOVED = 200_000;

/** `root` is the project's path, one letter for each byte. Follows no link below it. Throws what `turns` throws. */
export async function compare(root: string, touched: Touched, turns: Turns): Promise<Compared> {
  return await new Comparison(root, touched, turns).run();
}

class Comparison {
  readonly #root: string;
  readonly #touched: Touched;
  readonly #turns: Turns;
  /** Whether a folder's path leads through folders alone, now. */
  readonly #real = new Map<string, boolean>([["", true]]);
  readonly #changes: DirectChange[] = [];
  #moved = 0;
  #unseen = 0;

  constructor(root: string, touched: Touched, turns: Turns) {
    this.#root = root;
    this.#touched = touched;
    this.#turns = turns;
  }

  async run(): Promise<Compared> {
    for (const folder of targetsOf(this.#touched.moves)) await this.#walk(folder);
    for (const path of this.#touched.taken)
      if (!this.#touched.before.has(path)) this.#touched.before.set(path, undefined);
    for (const [path, before] of this.#touched.before) {
      await this.#turns.next();
      this.#trying(() => this.#look(path, before));
    }
    return { changes: this.#changes, gaps: this.#gaps() };
  }

  #gaps(): readonly string[] {
    return [
      ...(this.#moved > MAX_MOVED ? [`folders with more than ${MAX_MOVED} names were moved`] : []),
      ...(this.#unseen > 0 ? [`${this.#unseen} paths cannot be looked at any more`] : []),
    ];
  }

  /** What came along with a folder that was moved here stood elsewhere before. */
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
    // The long numbers cost as much again as the look, and only what stood there is compared by them.
    const now = before === undefined ? this.#now(path) : this.#exact(path);
    const after = now === undefined ? undefined : Number(now.mode);
    const how = this.#touched.how.get(path) ?? HOW.name;
    const kind = changeKind(before?.mode, after, () => isSame(how, before, now));
    if (kind !== undefined) this.#changes.push({ path, kind, now });
  }

  /** Too long a path, or a folder that nobody may search. */
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

  /** A link in a folder's place leads elsewhere: what is below it is not the project's. */
  #isReal(folder: string): boolean {
    const known = this.#real.get(folder);
    if (known !== undefined) return known;
    const real = this.#isReal(parentOf(folder)) && this.#now(folder)?.isDirectory() === true;
    this.#real.set(folder, real);
    return real;
  }
}

/**
 * Of two of one type and mode. What replaced a file may have got the number of the one that went, and its time can be set:
 * only the time of change tells then.
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
