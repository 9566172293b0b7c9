/**
 * Settings and hooks of git that changed while a command ran, for when its listing does not have them all: a command may end its
 * own world, write more files than are listed, or close the folder. A change's time (ctime) is the kernel's: no command sets it.
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

/** From `include/uapi/asm-generic/fcntl.h`: Node has no name for it. */
const O_PATH = 0o10000000;

/** At 0.01 to 0.03 ms each. */
const MOST_FOLDERS = 100_000;

/** A command that has ended has left each folder open or closed, so one way up is enough. */
const MOST_CLIMBED = 1000;

/** So many are looked into in one turn of the broker's thread. */
const FOLDERS_A_TURN = 200;

/** The clock of files is behind by up to a tick of the kernel (1 to 10 ms). */
const TICK_MS = 10;

const NAMES: ReadonlySet<string> = new Set(["config", "config.worktree"]);
/**
 * What makes a git folder of one whose settings and hooks are older, or leads to them. They come last: by then what runs code is
 * gone, and they may stay.
 */
const LAST: ReadonlySet<string> = new Set(["commondir", "HEAD", ".git"]);
/** A folder with both is a git folder where a `commondir` leads there. */
const PARTS: ReadonlySet<string> = new Set(["objects", "refs"]);
/** Folders whose files git runs, or takes addresses from. */
const READ = /(?:^|\/)(?:hooks|remotes|branches)$/;

export type Searched = {
  readonly project: string;
  /** In milliseconds since 1970. */
  readonly since: number;
  /** A folder in which nothing can have changed (`.git`). */
  readonly sealed: string | undefined;
  readonly turns: SettleTurns;
};

/** Calls `visit` with paths below the project, each while the folders above it are open to their owner. */
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

  /** Returns the folders in it; those of a closed one are looked through at once, since it is closed again. */
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
      // A parent folder was closed since it was listed. A process that goes on closing folders has outlived its command: init seals what it made.
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
    // A folder that was moved here has a new time, and what lies in it has not.
    const isMoved = isRead && this.#isChanged(folder);
    const folders: string[] = [];
    for (const entry of readdirSync(join(this.#project, folder), { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) {
        folders.push(path);
        if (PARTS.has(entry.name) && this.#isNew(path)) this.#last.push(path);
      } else if (isMoved || ((isRead || NAMES.has(entry.name)) && this.#isChanged(path))) this.#visit(path);
      else if (LAST.has(entry.name) && this.#isChanged(path)) this.#last.push(path);
    }
    return folders;
  }

  /** Each commit changes the time of such a folder of a person's. */
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

/** A folder that its owner has closed, opened for `act` and closed again. What stands behind a link stays as it is. */
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
