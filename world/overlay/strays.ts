/** Writes caught in the upper layers of veils: made inside, listed for people, and removed with the world. */
import { mkdirSync, statSync } from "node:fs";
import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { MAX_FILES } from "../model/fs-diff.ts";
import type { Strayed } from "../model/world.ts";
import type { KeptWrites } from "../plan/scratch.ts";
import { unmakable } from "./layers.ts";
import { bytesOf, namesBelow, rawPath, shownPath } from "./names.ts";

/** `layers` holds the writes below `target`. */
export type StrayLayer = KeptWrites;

/** Makes some thirty empty layer folders; synchronous, because that is faster. Throws `WorldUnavailable`. */
export function prepareStrays(veils: readonly StrayLayer[]): void {
  for (const { layers } of veils) {
    try {
      // Folders of an earlier try, with more features requested, may exist.
      mkdirSync(join(layers, "upper"), { recursive: true, mode: 0o755 });
      mkdirSync(join(layers, "work"), { recursive: true, mode: 0o700 });
    } catch (error) {
      throw unmakable(layers, error);
    }
  }
}

type Layer = { readonly target: string; readonly upper: string; readonly emptySince: number };

/** Stray writes of one world, each reported once: to the first command that ends afterwards. */
export class Strays {
  readonly #layers: readonly Layer[];
  /** The latest reported ctime (ms) and its paths: further changes may still get the same stamp. */
  #told = 0;
  #toldThen = new Set<string>();

  /** Construct after mounting the layers and before any command: the mount itself leaves marks in the layers. */
  constructor(layers: readonly StrayLayer[]) {
    this.#layers = layers.map(({ target, layers }) => {
      const upper = join(layers, "upper");
      return { target, upper, emptySince: changeTime(upper) };
    });
  }

  /**
   * Returns writes and deletions not yet reported. The cost grows with all stray writes so far, so call only after init has seen
   * a stray write (`native/mount/kept_writes.h`).
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

/** Not the mtime: a copy-up restores the mtime of the folder (the kernel's ovl_copy_up). */
function changeTime(upper: string): number {
  return statSync(upper).ctimeMs;
}

type Found = { readonly path: string; readonly time: number };

async function collect(upper: string, shown: string, found: Found[]): Promise<void> {
  for (const name of await namesIn(upper)) {
    const path = join(upper, name);
    const stat = await lstat(rawPath(path)).catch(() => undefined);
    if (stat === undefined) continue;
    // A folder with content was copied up or is new, and its content shows that; only empty folders are listed.
    const inside = stat.isDirectory() ? await namesIn(path) : [];
    if (inside.length > 0) await collect(path, join(shown, name), found);
    else found.push({ path: join(shown, name), time: stat.ctimeMs });
  }
}

async function namesIn(folder: string): Promise<readonly string[]> {
  return await namesBelow(folder).catch(() => []);
}
