/**
 * Looking at the files of a project in short turns of the event loop: nobody else waits for longer than one of them. Nothing is
 * read and no link is followed.
 */
import {
  closeSync,
  constants,
  type Dir,
  type Dirent,
  lstatSync,
  openSync,
  opendirSync,
  readlinkSync,
  type Stats,
} from "node:fs";
import { join } from "node:path";

/** Of the event loop at once, in milliseconds. */
const TURN_MS = 0.5;

/** What is looked at last: large, and rarely edited by hand. Git's own folder never: what is committed has a name. */
const LAST: ReadonlySet<string> = new Set(["node_modules", "target", "vendor", ".venv"]);
const NEVER: ReadonlySet<string> = new Set([".git"]);

export type Seen = {
  /** Relative to the project; empty for the project itself. */
  readonly path: string;
  readonly stat: Stats;
  /** In a folder that is looked at last. */
  readonly late: boolean;
};

/** How far a walk came; `unread`: what is there and could not be looked at (closed to us, too deep, a name that is no UTF-8). */
export type Walked = { readonly stopped: boolean; readonly unread: number };

/**
 * Shallow first. `rest` is called between two turns: it waits, and says whether to go on.
 * Whoever works in the project may swap a folder for a link meanwhile: each is opened, and counts if it is where it should be.
 */
export async function walk(
  project: string,
  visit: (seen: Seen) => void,
  rest: () => Promise<boolean>,
): Promise<Walked> {
  const queue: Queue = { folders: [{ path: "", late: false }], later: [], unread: 0 };
  const turns = new TimeSlices(rest);
  for (let at = 0; at < queue.folders.length || queue.later.length > 0; at += 1) {
    if (at === queue.folders.length) queue.folders.push(...queue.later.splice(0));
    const folder = queue.folders[at];
    if (folder !== undefined && !(await lookInto(project, folder, queue, visit, turns)))
      return { stopped: true, unread: queue.unread };
  }
  return { stopped: false, unread: queue.unread };
}

type Queue = { readonly folders: Folder[]; readonly later: Folder[]; unread: number };

class TimeSlices {
  readonly #rest: () => Promise<boolean>;
  #begun = performance.now();

  constructor(rest: () => Promise<boolean>) {
    this.#rest = rest;
  }

  get isOver(): boolean {
    return performance.now() - this.#begun >= TURN_MS;
  }

  async next(): Promise<boolean> {
    const goesOn = await this.#rest();
    this.#begun = performance.now();
    return goesOn;
  }
}

/** Whether to go on. */
async function lookInto(
  project: string,
  folder: Folder,
  queue: Queue,
  visit: (seen: Seen) => void,
  turns: TimeSlices,
): Promise<boolean> {
  const open = openFolder(join(project, folder.path));
  // Where the project itself is another folder, or none, nothing of it was seen.
  if (open === "unread" || (open === "gone" && folder.path === "")) queue.unread += 1;
  if (open === "unread" || open === "gone") return true;
  try {
    look(`${open.way}/.`, folder, queue, visit);
    for (const entry of entriesOf(open.way)) {
      // Its name is bytes that are no text: a path made of it leads nowhere.
      if (entry === UNREAD || entry.name.includes("\ufffd")) queue.unread += 1;
      else enter(entry, open.way, folder, queue, visit);
      if (turns.isOver && !(await turns.next())) return false;
    }
    return true;
  } finally {
    open.close();
  }
}

function enter(entry: Dirent, way: string, folder: Folder, queue: Queue, visit: (seen: Seen) => void): void {
  const { folders, later } = queue;
  const path = folder.path === "" ? entry.name : `${folder.path}/${entry.name}`;
  const found = { path, late: folder.late };
  if (!entry.isDirectory()) look(`${way}/${entry.name}`, found, queue, visit);
  else if (!folder.late && LAST.has(entry.name)) later.push({ path, late: true });
  else if (!NEVER.has(entry.name)) folders.push(found);
}

type Folder = { readonly path: string; readonly late: boolean };

type OpenFolder = {
  /** Leads to the folder that is open, whatever its name leads to by then. */
  readonly way: string;
  readonly close: () => void;
};

/** `gone`: no folder any more, or not where its name says; what changed that shows in the folder above. */
function openFolder(path: string): OpenFolder | "gone" | "unread" {
  let file: number;
  try {
    file = openSync(
      path,
      constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
    );
  } catch (error) {
    return isGone(error) ? "gone" : "unread";
  }
  const way = `/proc/self/fd/${file}`;
  const open = { way, close: () => closeSync(file) };
  let place: string | undefined;
  try {
    place = readlinkSync(way);
  } catch {
    // Its name is longer than the kernel tells.
  }
  if (place === path) return open;
  open.close();
  return place === undefined ? "unread" : "gone";
}

function isGone(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOENT" || code === "ENOTDIR" || code === "ELOOP";
}

/** What is gone since its folder was read shows in the folder. */
function look(way: string, { path, late }: Folder, queue: Queue, visit: (seen: Seen) => void): void {
  let stat: Stats;
  try {
    stat = lstatSync(way);
  } catch (error) {
    if (!isGone(error)) queue.unread += 1;
    return;
  }
  visit({ path, stat, late });
}

const UNREAD = Symbol("the rest of a folder that cannot be read");

/** A few at a time: a folder may hold more than one turn can read. */
function* entriesOf(folder: string): Generator<Dirent | typeof UNREAD> {
  let names: Dir;
  try {
    names = opendirSync(folder, { bufferSize: 64 });
  } catch {
    yield UNREAD;
    return;
  }
  try {
    for (let entry = nextOf(names); entry !== null; entry = nextOf(names)) {
      yield entry;
      if (entry === UNREAD) return;
    }
  } finally {
    names.closeSync();
  }
}

/** A folder that is removed while it is read ends (getdents gives ENOENT). */
function nextOf(names: Dir): Dirent | typeof UNREAD | null {
  try {
    return names.readSync();
  } catch (error) {
    return isGone(error) ? null : UNREAD;
  }
}
