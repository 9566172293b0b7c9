import { createHash } from "node:crypto";
import type { Seen } from "./walk.ts";

/** Projects with more files get no hash: repeated scans would cost too much. */
export const MAX_HASHED = 4000;

/** Hashes the state of a project's files: kinds, modes, sizes, modification times and names. Contents are not read. */
export class StateHash {
  readonly #lines: string[] = [];
  #tooMany = false;

  /** Adds a file, except files of packages: packages are no edits of the project, and too numerous. */
  add({ path, stat, late }: Seen): void {
    // A folder's times also change by temporary files created inside.
    if (late || stat.isDirectory()) return;
    if (this.#lines.length >= MAX_HASHED) this.#tooMany = true;
    else this.#lines.push(`${path}\0${stat.mode}\0${stat.size}\0${stat.mtimeMs}\n`);
  }

  get tooMany(): boolean {
    return this.#tooMany;
  }

  /** Returns `sha256:` and hex; null for too many files. */
  value(): string | null {
    if (this.#tooMany) return null;
    const hash = createHash("sha256");
    for (const line of this.#lines.sort()) hash.update(line);
    return `sha256:${hash.digest("hex")}`;
  }
}
