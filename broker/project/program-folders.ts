/** The folders on a person's PATH, as the broker and the shells that call it have it: what is written there runs outside of every world. */
import { statSync } from "node:fs";
import { basename, dirname, isAbsolute, join } from "node:path";
import { isWithin } from "../model/folders.ts";
import { realPlace } from "../model/real-place.ts";

/** Links are followed again after this time: version managers point them elsewhere. */
const BELIEVED_MS = 500;

/** PATH of the broker and of callers, the oldest callers' forgotten: each terminal may have another. */
const MAX_PATHS = 64;

/** What lies beside `bin` where a tool is installed, and is loaded by what lies in it. */
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

  /** PATH of a person's shell. Never an agent's: it could name a project, which would be none then. */
  add(path: string): void {
    if (this.#callers.has(path)) return;
    const [oldest] = this.#callers;
    if (this.#callers.size >= MAX_PATHS && oldest !== undefined) this.#callers.delete(oldest);
    this.#callers.add(path);
    this.#until = 0;
  }

  /** Real paths. Without the home and what holds it, which are no projects anyway. */
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
   * The folder on PATH because of which a real path is nobody's project: it is that folder, lies in it, or is what is installed around
   * it. Of a shell that calls, not what is around it: a person puts `bin` of the project on PATH to work there.
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
    // Closed to the broker, and so to whoever works for the same user.
    return false;
  }
}
