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
import { join } from "node:path";

/** From `include/uapi/asm-generic/fcntl.h`: Node has no name for it. */
const O_PATH = 0o10000000;

/** At 0.01 to 0.03 ms each. */
const MOST_FOLDERS = 100_000;

/** So many are looked into in one turn of the broker's thread. */
const FOLDERS_A_TURN = 200;

/** The clock of files is behind by up to a tick of the kernel (1 to 10 ms). */
const TICK_MS = 10;

const NAMES: ReadonlySet<string> = new Set(["config", "config.worktree"]);
/**
 * What makes a git folder of one whose settings and hooks are older, or leads to them. They come last: by then what runs code is
 * gone, and they may stay.
 */
const LAST: ReadonlySet<string> = new Set(["commondir", "HEAD"]);
/** Folders whose files git runs, or takes addresses from. */
const READ = /(?:^|\/)(?:hooks|remotes|branches)$/;

/** Calls `visit` with paths below `project` but in `sealed` (`.git`), each while the folders above it are open to their owner. */
export async function searchChanged(
  project: string,
  since: number,
  sealed: string | undefined,
  visit: (path: string) => void,
): Promise<void> {
  const search = new Search(project, since - TICK_MS, visit);
  const folders = [""];
  for (let at = 0; at < folders.length && at < MOST_FOLDERS; at += 1) {
    if (at % FOLDERS_A_TURN === FOLDERS_A_TURN - 1) await new Promise((resolve) => setImmediate(resolve));
    const folder = folders[at] ?? "";
    if (folder !== sealed) folders.push(...search.look(folder));
  }
  search.visitLast();
}

class Search {
  readonly #project: string;
  readonly #since: number;
  readonly #visit: (path: string) => void;
  #last: string[] = [];

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
      if ((error as NodeJS.ErrnoException).code !== "EACCES") return [];
      whileOpen(join(this.#project, folder), () => {
        for (const below of this.#entries(folder)) this.#lookAtAll(below);
        this.visitLast();
      });
      return [];
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
      if (entry.isDirectory()) folders.push(path);
      else if (isMoved || ((isRead || NAMES.has(entry.name)) && this.#isChanged(path))) this.#visit(path);
      else if (LAST.has(entry.name) && this.#isChanged(path)) this.#last.push(path);
    }
    return folders;
  }

  #isChanged(path: string): boolean {
    const { ctimeMs } = lstatSync(join(this.#project, path), { throwIfNoEntry: false }) ?? { ctimeMs: 0 };
    return ctimeMs >= this.#since;
  }
}

/** A folder that its owner has closed, opened for `act` and closed again. What stands behind a link stays as it is. */
function whileOpen(path: string, act: () => void): void {
  const folder = openSync(path, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    const name = `/proc/self/fd/${folder}`;
    const { mode, uid } = fstatSync(folder);
    if (uid !== process.getuid?.() || (mode & 0o700) === 0o700 || readlinkSync(name) !== path) return;
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
