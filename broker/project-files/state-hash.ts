import { createHash } from "node:crypto";
import type { Seen } from "./walk.ts";

/** More files than this have no hash: looking at them all the time would cost too much. */
export const MAX_HASHED = 4000;

/** Gathers the state of a project's files: kinds, modes, sizes, times of change, and names. Contents are not read. */
export class StateHash {
  readonly #lines: string[] = [];
  #tooMany = false;

  /** Packages are others' work: they belong to no edit of this project, and there are too many of them. */
  add({ path, stat, late }: Seen): void {
    // A folder's times change with what is made in it and taken away again.
    if (late || stat.isDirectory()) return;
    if (this.#lines.length >= MAX_HASHED) this.#tooMany = true;
    else this.#lines.push(`${path}\0${stat.mode}\0${stat.size}\0${stat.mtimeMs}\n`);
  }

  get tooMany(): boolean {
    return this.#tooMany;
  }

  /** `sha256:` and hex; null for too many files. */
  value(): string | null {
    if (this.#tooMany) return null;
    const hash = createHash("sha256");
    for (const line of this.#lines.sort()) hash.update(line);
    return `sha256:${hash.digest("hex")}`;
  }
}
