/**
 * Searches for git settings and hooks changed during a command whose listing is incomplete: a command may end its own
 * world, exceed the listing's bound, or close a folder (`chmod 0`). The search uses ctime, which no command can set.
 */
import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { SettleTurns } from "./settle-turns.ts";

/** From `include/uapi/asm-generic/fcntl.h`; Node has no constant. */
const O_PATH = 0o10000000;

/** Bound on the search; each folder takes 0.01 to 0.03 ms. */
const MOST_FOLDERS = 100_000;

/** Bound on climbs to a closed parent. An ended command's folders no longer change, so climbing up once is enough. */
const MOST_CLIMBED = 1000;

/** Folders searched in one turn of the event loop. */
const FOLDERS_A_TURN = 200;

/** File timestamps lag by up to a kernel tick (1 to 10 ms). */
const TICK_MS = 10;

const NAMES: ReadonlySet<string> = new Set(["config", "config.worktree"]);
/**
 * Names that make a folder with older settings and hooks a git folder, or link to such a folder. Visited last: code is
 * gone by then, so these files may stay.
 */
const LAST: ReadonlySet<string> = new Set(["commondir", "HEAD", ".git"]);
/** Git accepts a folder with both parts behind a `commondir`, even without HEAD; links to folders are parts too. */
const PARTS: ReadonlySet<string> = new Set(["objects", "refs"]);
/** Folders with files that git runs, or reads addresses or paused state from. */
const READ = /(?:^|\/)(?:hooks|remotes|branches|rebase-merge|rebase-apply|sequencer)$/;

export type Searched = {
  readonly project: string;
  /** In milliseconds since 1970. */
  readonly since: number;
  /** A folder without possible changes (`.git`). */
  readonly sealed: string | undefined;
  readonly turns: SettleTurns;
};

/** Calls `visit` for paths relative to the project, while the folders above are open to their owner. */
export async function searchChanged(
  { project, since, sealed, turns }: Searched,
  visit: (path: string) => void,
): Promise<void> {
  const search = new Search(project, since - TICK_MS, visit);
  let left = [""];
  for (let seen = 0; left.length > 0 && seen < MOST_FOLDERS; seen += FOLDERS_A_TURN) {
    await new Promise((resolve) => setImmediate(resolve));
    const turn = left.slice(0, FOLDERS_A_TURN).filter((folder) => folder !== sealed);
    const below = await turns.look(() => turn.flatMap((folder) => search.look(folder)));
    left = [...left.slice(FOLDERS_A_TURN), ...below];
  }
  await turns.look(() => search.visitLast());
}

class Search {
  readonly #project: string;
  readonly #since: number;
  readonly #visit: (path: string) => void;
  #last: string[] = [];
  #climbed = 0;

  constructor(project: string, since: number, visit: (path: string) => void) {
    this.#project = project;
    this.#since = since;
    this.#visit = visit;
  }

  /** Returns the folders inside. A closed folder is searched at once, since it is open only during the call. */
  look(folder: string): readonly string[] {
    try {
      return this.#entries(folder);
    } catch (error) {
      if (!isClosed(error)) return [];
      this.#openAndLook(folder);
      return [];
    }
  }

  #openAndLook(folder: string): void {
    try {
      whileOpen(join(this.#project, folder), () => {
        for (const below of this.#entries(folder)) this.#lookAtAll(below);
        this.visitLast();
      });
    } catch (error) {
      // A parent folder was closed after the listing. Only a process that outlived its command could keep closing
      // folders, and init seals that process's folders.
      if (!isClosed(error) || folder === "" || this.#climbed++ >= MOST_CLIMBED) return;
      this.#openAndLook(parentOf(folder));
    }
  }

  visitLast(): void {
    const last = this.#last;
    this.#last = [];
    for (const path of last) this.#visit(path);
  }

  #lookAtAll(folder: string): void {
    for (const below of this.look(folder)) this.#lookAtAll(below);
  }

  #entries(folder: string): readonly string[] {
    const isRead = READ.test(folder);
    // A moved folder has a new ctime, but its content does not.
    const isMoved = isRead && this.#isChanged(folder);
    const folders: string[] = [];
    for (const entry of readdirSync(join(this.#project, folder), { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) {
        folders.push(path);
        if (PARTS.has(entry.name) && this.#isNew(path)) this.#last.push(path);
      } else if (isMoved || ((isRead || NAMES.has(entry.name)) && this.#isChanged(path))) this.#visit(path);
      else if ((LAST.has(entry.name) || PARTS.has(entry.name)) && this.#isChanged(path))
        this.#last.push(path);
    }
    return folders;
  }

  /** Checks the birth time: each commit changes the ctime of a person's folders. */
  #isNew(path: string): boolean {
    return (lstatSync(join(this.#project, path), { throwIfNoEntry: false })?.birthtimeMs ?? 0) >= this.#since;
  }

  #isChanged(path: string): boolean {
    const { ctimeMs } = lstatSync(join(this.#project, path), { throwIfNoEntry: false }) ?? { ctimeMs: 0 };
    return ctimeMs >= this.#since;
  }
}

function isClosed(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "EACCES";
}

function parentOf(folder: string): string {
  const parent = dirname(folder);
  return parent === "." ? "" : parent;
}

/** Opens a closed folder for `act`, then closes it again. Never follows a link. */
function whileOpen(path: string, act: () => void): void {
  const folder = openSync(path, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    const name = `/proc/self/fd/${folder}`;
    const { mode, uid } = fstatSync(folder);
    if (uid !== process.getuid?.() || readlinkSync(name) !== path) return;
    chmodSync(name, (mode & 0o7777) | 0o700);
    try {
      act();
    } finally {
      chmodSync(name, mode & 0o7777);
    }
  } finally {
    closeSync(folder);
  }
}
