/**
 * Walks the files of a project in short turns of the event loop, so that no request waits longer than a turn. Reads no contents
 * and follows no links.
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

/** Length of a turn, in milliseconds. */
const TURN_MS = 0.5;

/** Folders visited last: large, and rarely edited by hand. Git's own folder is never visited: committed content has a hash. */
const LAST: ReadonlySet<string> = new Set(["node_modules", "target", "vendor", ".venv"]);
const NEVER: ReadonlySet<string> = new Set([".git"]);

export type Seen = {
  /** Relative to the project; empty for the project itself. */
  readonly path: string;
  readonly stat: Stats;
  /** Whether the file lies in a folder visited last. */
  readonly late: boolean;
};

/** Result of a walk; `unread`: entries that could not be visited (no permission, too deep, a name that is not UTF-8). */
export type Walked = { readonly stopped: boolean; readonly unread: number };

/**
 * Visits shallow folders first. `rest` is called between turns: it waits, and returns whether to continue. Commands may replace a
 * folder by a link meanwhile, so each folder is opened first and skipped if opened elsewhere.
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

/** Visits a folder's entries; returns whether to continue. */
async function lookInto(
  project: string,
  folder: Folder,
  queue: Queue,
  visit: (seen: Seen) => void,
  turns: TimeSlices,
): Promise<boolean> {
  const open = openFolder(join(project, folder.path));
  // If the project folder itself is missing or replaced, no file was visited.
  if (open === "unread" || (open === "gone" && folder.path === "")) queue.unread += 1;
  if (open === "unread" || open === "gone") return true;
  try {
    look(`${open.way}/.`, folder, queue, visit);
    for (const entry of entriesOf(open.way)) {
      // The name's bytes are not UTF-8, so a path with this name cannot be opened.
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
  /** Path to the opened folder, whatever its name refers to by now. */
  readonly way: string;
  readonly close: () => void;
};

/** Opens a folder. `gone`: removed, or not at its expected place; such a change shows in the parent folder. */
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
    // The path is longer than the kernel reports.
  }
  if (place === path) return open;
  open.close();
  return place === undefined ? "unread" : "gone";
}

function isGone(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOENT" || code === "ENOTDIR" || code === "ELOOP";
}

/** Visits a path; a removal since reading the folder shows in the folder's times. */
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

/** Reads a few entries at a time: a folder may hold more than a single turn can read. */
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

/** Reads an entry; a folder removed meanwhile counts as ended (getdents returns ENOENT). */
function nextOf(names: Dir): Dirent | typeof UNREAD | null {
  try {
    return names.readSync();
  } catch (error) {
    return isGone(error) ? null : UNREAD;
  }
}
