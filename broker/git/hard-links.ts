/** Other names of a file below a project: a hard link (`ln scripts/check .git/hooks/pre-commit`) gives one file two names. */
import { BoundedMap } from "../model/bounded-map.ts";
import { type Dirent, lstatSync, readdirSync, statSync, type Stats } from "node:fs";
import { basename, dirname, join } from "node:path";

/** Entries of a project that are looked at, nearest to its top first; so many take half a second, once for each set of files. */
const MOST_ENTRIES = 50_000;

/** Folders that the broker may not read, as those of a container's data. */
const MOST_CLOSED = 100;

/** Projects that are remembered. */
const MAX_KNOWN = 256;

export type OtherNames = {
  /** By device and inode. */
  readonly names: ReadonlyMap<string, readonly string[]>;
  /** Whether the whole project was looked through, or as much of it as could hold one more. */
  readonly whole: boolean;
  /** Folders that could not be looked into, and the time of their last change: once they are open, they are looked into. */
  readonly closed: ReadonlyMap<string, number | undefined>;
};

/** Files with more than one name, by {@link fileId}. */
export type Linked = ReadonlyMap<string, Stats>;

const NONE: OtherNames = { names: new Map(), whole: true, closed: new Map() };

/** Looks a project through once, and again when one of the files, or a name that was found, is another. */
export class HardLinks {
  readonly #known = new BoundedMap<string, { readonly asked: string; readonly found: OtherNames }>(MAX_KNOWN);
  readonly #most: number;

  constructor(most = MOST_ENTRIES) {
    this.#most = most;
  }

  /** Every name of the files in the project, theirs among them. */
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

/** A file by its device and inode. */
export function fileId({ dev, ino }: Stats): string {
  return `${dev}:${ino}`;
}

/** The file that a path leads to, where it has another name too. */
export function linkedFile(path: string): Stats | undefined {
  try {
    const stat = statSync(path, { throwIfNoEntry: false });
    return stat?.isFile() === true && stat.nlink > 1 ? stat : undefined;
  } catch {
    // Closed to the broker, and to the person's git, which the same user runs.
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

/** A folder that a command closes (`chmod 0`) and a later one opens again hides no name that was known. */
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
      // A name that is no UTF-8 is read with this letter, and cannot be told to a world.
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

/** Most files of a repository, under names that git makes of their content. */
function holdsObjects(folder: string): boolean {
  return basename(folder) === "objects" && dirname(folder).endsWith(".git");
}

/** Undefined: closed to the broker. */
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
