/** Writes that landed in the upper layers of veils: made inside, listed for people, and gone with the world. */
import { mkdirSync, statSync } from "node:fs";
import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { MAX_FILES } from "../model/fs-diff.ts";
import type { Strayed } from "../model/world.ts";
import type { KeptWrites } from "../plan/scratch.ts";
import { unmakable } from "./layers.ts";
import { bytesOf, namesBelow, rawPath, shownPath } from "./names.ts";

/** `layers` holds what was written below `target`. */
export type StrayLayer = KeptWrites;

/** Makes the layers, empty: some thirty folders, in less time than it takes to ask for one. Throws `WorldUnavailable`. */
export function prepareStrays(veils: readonly StrayLayer[]): void {
  for (const { layers } of veils) {
    try {
      // There already when less is asked of the host than at the last try.
      mkdirSync(join(layers, "upper"), { recursive: true, mode: 0o755 });
      mkdirSync(join(layers, "work"), { recursive: true, mode: 0o700 });
    } catch (error) {
      throw unmakable(layers, error);
    }
  }
}

type Layer = { readonly target: string; readonly upper: string; readonly emptySince: number };

/** What strayed in one world, each change told once: to the command that ends first after it. */
export class Strays {
  readonly #layers: readonly Layer[];
  /** The latest change (ctime, ms) that was told, and which paths had it: others may still get the same stamp. */
  #told = 0;
  #toldThen = new Set<string>();

  /** To be made when the layers are mounted and nothing has run: mounting leaves marks of its own on them. */
  constructor(layers: readonly StrayLayer[]) {
    this.#layers = layers.map(({ target, layers }) => {
      const upper = join(layers, "upper");
      return { target, upper, emptySince: changeTime(upper) };
    });
  }

  /**
   * What was written or deleted and not told yet. Asked only once init has seen that something strayed (`native/mount/kept_writes.h`);
   * it grows with everything that ever did.
   */
  async take(): Promise<Strayed> {
    const touched = this.#layers.filter(({ upper, emptySince }) => changeTime(upper) !== emptySince);
    const found: Found[] = [];
    for (const { upper, target } of touched) await collect(bytesOf(upper), bytesOf(target), found);
    const fresh = found.filter(
      ({ path, time }) => time > this.#told || (time === this.#told && !this.#toldThen.has(path)),
    );
    for (const each of fresh) this.#remember(each);
    const paths = fresh.map(({ path }) => shownPath(path)).sort();
    return { paths: paths.slice(0, MAX_FILES), count: paths.length };
  }

  #remember({ path, time }: Found): void {
    if (time > this.#told) this.#toldThen = new Set();
    if (time >= this.#told) this.#toldThen.add(path);
    this.#told = Math.max(this.#told, time);
  }
}

/** Not the mtime: copying up sets that of the folder back (the kernel's ovl_copy_up). */
function changeTime(upper: string): number {
  return statSync(upper).ctimeMs;
}

type Found = { readonly path: string; readonly time: number };

async function collect(upper: string, shown: string, found: Found[]): Promise<void> {
  for (const name of await namesIn(upper)) {
    const path = join(upper, name);
    const stat = await lstat(rawPath(path)).catch(() => undefined);
    if (stat === undefined) continue;
    // A folder was copied up on the way to what changed in it, or is new: that shows in what is in it, if anything is.
    const inside = stat.isDirectory() ? await namesIn(path) : [];
    if (inside.length > 0) await collect(path, join(shown, name), found);
    else found.push({ path: join(shown, name), time: stat.ctimeMs });
  }
}

async function namesIn(folder: string): Promise<readonly string[]> {
  return await namesBelow(folder).catch(() => []);
}
