/** Resolves a program's name to a file on the host, where paths are the same as in a world. */
import { realpathSync, statSync } from "node:fs";
import { isAbsolute, resolve } from "node:path";
import type { Program } from "./index.ts";

/** Lifetime of the cache in milliseconds: a repeated command costs no look at the disk. */
export const BELIEVED_MS = 500;

const MAX_KEPT = 4096;

/** Folders of PATH to search, at three microseconds per folder. Shims share the number (`shim/program.h`). */
const MAX_FOLDERS = 256;

export class ProgramPaths {
  readonly #kept = new Map<string, Program | null>();
  #since = 0;

  /**
   * Resolves a bare name or an absolute path to a file with this PATH; null when no file is found.
   *
   * @param cwd base of relative folders in PATH.
   */
  find(program: string, path: string, cwd: string): Program | null {
    this.#forgetOld();
    const relative = path.split(":").some((folder) => !isAbsolute(folder));
    const key = `${program}\0${path}\0${relative ? cwd : ""}`;
    const known = this.#kept.get(key);
    if (known !== undefined) return known;
    const found = isAbsolute(program) ? programAt(program) : inFolders(program, path, cwd);
    this.#kept.set(key, found);
    return found;
  }

  #forgetOld(): void {
    const now = performance.now();
    if (now - this.#since < BELIEVED_MS && this.#kept.size < MAX_KEPT) return;
    this.#kept.clear();
    this.#since = now;
  }
}

/** As in POSIX, an empty folder of PATH is the working directory. */
function inFolders(name: string, path: string, cwd: string): Program | null {
  for (const folder of path.split(":").slice(0, MAX_FOLDERS)) {
    const found = programAt(resolve(cwd, folder, name));
    if (found !== null) return found;
  }
  return null;
}

const EXECUTABLE = 0o111;

/** A program without search permission for the broker counts as missing: rules then match by its name alone. */
function programAt(path: string): Program | null {
  try {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat === undefined || !stat.isFile() || (stat.mode & EXECUTABLE) === 0) return null;
    return { path, real: realpathSync.native(path) };
  } catch {
    // No permission, a loop of links, or removed meanwhile, ignoring: no program.
    return null;
  }
}
