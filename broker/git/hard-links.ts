/**
 * Finds other names of a file below a project: a hard link (`ln scripts/check .git/hooks/pre-commit`) gives a file two
 * names.
 */
import { BoundedMap } from "../model/bounded-map.ts";
import { type Dirent, lstatSync, readdirSync, statSync, type Stats } from "node:fs";
import { basename, dirname, join } from "node:path";

/** Entries searched per project, breadth first; this many take half a second, once per set of files. */
const MOST_ENTRIES = 50_000;

/** Folders unreadable for the broker, such as a container's data. */
const MOST_CLOSED = 100;

/** Projects in the cache. */
const MAX_KNOWN = 256;

export type OtherNames = {
  /** Paths by device and inode. */
  readonly names: ReadonlyMap<string, readonly string[]>;
  /** Whether every name was found, or the whole project was searched. */
  readonly whole: boolean;
  /** Unreadable folders with their ctime: a change makes the broker search again. */
  readonly closed: ReadonlyMap<string, number | undefined>;
};

/** Hard-linked files by {@link fileId}. */
export type Linked = ReadonlyMap<string, Stats>;

const NONE: OtherNames = { names: new Map(), whole: true, closed: new Map() };

/** Searches a project once, and again when a file or a found name has changed. */
export class HardLinks {
  readonly #known = new BoundedMap<string, { readonly asked: string; readonly found: OtherNames }>(MAX_KNOWN);
  readonly #most: number;

  constructor(most = MOST_ENTRIES) {
    this.#most = most;
  }

  /** Returns every name of the files in the project, including their own. */
  in(project: string, files: Linked): OtherNames {
    if (files.size === 0) return NONE;
    const asked = [...files].map(([id, { nlink, ctimeMs }]) => `${id}:${nlink}:${ctimeMs}`).join("\n");
    const known = this.#known.get(project);
    if (known?.asked === asked && areThere(known.found)) return known.found;
    const found = withClosed(search(project, files, this.#most), known?.found ?? NONE, files);
    this.#known.set(project, { asked, found });
    return found;
  }
}

/** Identifies a file by device and inode. */
export function fileId({ dev, ino }: Stats): string {
  return `${dev}:${ino}`;
}

/** Returns a path's file if hard-linked. */
export function linkedFile(path: string): Stats | undefined {
  try {
    const stat = statSync(path, { throwIfNoEntry: false });
    return stat?.isFile() === true && stat.nlink > 1 ? stat : undefined;
  } catch {
    // Unreadable for the broker, and for git run by the same user.
    return undefined;
  }
}

function areThere({ names, closed }: OtherNames): boolean {
  if (![...closed].every(([folder, changed]) => changedAt(folder) === changed)) return false;
  return [...names].every(([id, paths]) =>
    paths.every((path) => {
      const stat = lookAt(path);
      return stat === "closed" || (stat !== undefined && fileId(stat) === id);
    }),
  );
}

/**
 * Keeps names known from before in closed folders: a command may close a folder (`chmod 0`) and a later command reopen
 * it.
 */
function withClosed(found: OtherNames, before: OtherNames, files: Linked): OtherNames {
  const names = new Map(found.names);
  for (const [id, paths] of before.names) {
    const closed = files.has(id) ? paths.filter((path) => lookAt(path) === "closed") : [];
    if (closed.length > 0) names.set(id, [...(names.get(id) ?? []), ...closed]);
  }
  return { ...found, names };
}

function search(project: string, files: Linked, most: number): OtherNames {
  const names = new Map<string, string[]>();
  const closed = new Map<string, number | undefined>();
  let left = [...files.values()].reduce((sum, { nlink }) => sum + nlink, 0);
  let [seen, whole] = [0, true];
  const folders = [project];
  for (const folder of folders) {
    const entries = entriesOf(folder);
    if (entries === undefined && closed.size < MOST_CLOSED) closed.set(folder, changedAt(folder));
    if (entries === undefined) whole = false;
    for (const entry of entries ?? []) {
      seen += 1;
      if (seen > most) return { names, whole: false, closed };
      const path = join(folder, entry.name);
      if (entry.isDirectory() && !holdsObjects(path)) folders.push(path);
      if (!entry.isFile()) continue;
      const stat = lookAt(path);
      // Node decodes a non-UTF-8 name with U+FFFD; such a name cannot be passed to a world.
      if (stat === "closed" || (stat === undefined && path.includes("\uFFFD"))) whole = false;
      const id = stat === undefined || stat === "closed" || stat.nlink < 2 ? undefined : fileId(stat);
      if (id === undefined || !files.has(id)) continue;
      names.set(id, [...(names.get(id) ?? []), path]);
      left -= 1;
      if (left === 0) return { names, whole: true, closed };
    }
  }
  return { names, whole, closed };
}

/** Skipped: most files of a repository are objects, named by their content. */
function holdsObjects(folder: string): boolean {
  return basename(folder) === "objects" && dirname(folder).endsWith(".git");
}

/** Lists a folder; undefined when unreadable. */
function entriesOf(folder: string): readonly Dirent[] | undefined {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    return isMissing(error) ? [] : undefined;
  }
}

function lookAt(path: string): Stats | "closed" | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (error) {
    return isMissing(error) ? undefined : "closed";
  }
}

function changedAt(folder: string): number | undefined {
  const stat = lookAt(folder);
  return stat === undefined || stat === "closed" ? undefined : stat.ctimeMs;
}

function isMissing(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "");
}
