/** Folders on a person's PATH, from the broker and from calling shells: programs written there run outside every world. */
import { statSync } from "node:fs";
import { basename, dirname, isAbsolute, join } from "node:path";
import { isWithin } from "../model/folders.ts";
import { realPlace } from "../model/real-place.ts";

/** Links are resolved again after this time: version managers redirect them. */
const BELIEVED_MS = 500;

/** Bound on remembered PATHs of callers, since each terminal may have another; the oldest is forgotten. */
const MAX_PATHS = 64;

/** Sibling folders of `bin` in an installation, loaded by its programs. */
const LOADED = ["bin", "sbin", "lib", "lib64", "libexec"] as const;

export class ProgramFolders {
  readonly #home: string;
  readonly #own: string;
  readonly #callers = new Set<string>();
  #folders: readonly string[] = [];
  #installed: ReadonlySet<string> = new Set();
  #until = 0;

  /** @param home real path; `path` is the broker's own PATH. */
  constructor(home: string, path: string) {
    this.#home = home;
    this.#own = path;
  }

  /** Adds the PATH of a person's shell. Never an agent's: an agent's PATH could name a project, which would then be refused. */
  add(path: string): void {
    if (this.#callers.has(path)) return;
    const [oldest] = this.#callers;
    if (this.#callers.size >= MAX_PATHS && oldest !== undefined) this.#callers.delete(oldest);
    this.#callers.add(path);
    this.#until = 0;
  }

  /** Returns real paths, without the home and the folders above, which are never projects anyway. */
  all(): readonly string[] {
    const now = performance.now();
    if (now < this.#until) return this.#folders;
    const foldersOf = (path: string): string[] => path.split(":").filter(isAbsolute).map(realPlace);
    this.#installed = new Set(foldersOf(this.#own));
    const real = new Set([...this.#installed, ...[...this.#callers].flatMap(foldersOf)]);
    this.#folders = [...real].filter((folder) => !isWithin(this.#home, folder));
    this.#until = now + BELIEVED_MS;
    return this.#folders;
  }

  /**
   * Returns the PATH folder that forbids a real path as a project: the path is that folder, lies inside, or belongs to the
   * installation around it. Installations count only for the broker's PATH: a person puts a project's `bin` on the shell's PATH
   * to work there.
   */
  around(folder: string): string | undefined {
    return this.all().find((programs) => {
      if (isWithin(folder, programs)) return true;
      const prefix = dirname(programs);
      if (
        !this.#installed.has(programs) ||
        !/^s?bin$/.test(basename(programs)) ||
        isWithin(this.#home, prefix)
      )
        return false;
      const isPart = LOADED.some((name) => isWithin(folder, join(prefix, name)));
      return (folder === prefix || isPart) && exists(programs);
    });
  }
}

function exists(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    // Unreadable for every program of the same user.
    return false;
  }
}
