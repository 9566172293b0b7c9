/** State of one span's held changes; selection, refusals and conflicts of an apply. Pure. */
import type { Held, HeldChange, PathReason } from "../model/held.ts";
import { isAutorun } from "./autorun.ts";
import type { Journal } from "./held-journal.ts";
import { ancestorsOf, type Entry, FLAG, has, parentOf, replacesFolder, ROW, type Sight } from "./rows.ts";

export type State = {
  readonly held: Held;
  readonly entries: ReadonlyMap<string, Entry>;
  /** The project as first scanned. */
  readonly seen: ReadonlyMap<string, Entry>;
  readonly journal: Journal;
  /** Changes still to apply, by path. */
  readonly open: ReadonlyMap<string, Entry>;
};

export function stateOf(
  held: Held,
  entries: ReadonlyMap<string, Entry>,
  seen: ReadonlyMap<string, Entry>,
  journal: Journal,
): State {
  const open = new Map<string, Entry>();
  for (const path of [...entries.keys()].sort(byBytes)) {
    const entry = entries.get(path);
    if (entry === undefined || entry.kind === null) continue;
    if (!journal.applied.has(path) && !journal.discarded.has(path)) open.set(path, entry);
  }
  return { held, entries, seen, journal, open };
}

const ATTRIBUTES = [
  [FLAG.accessList, "access list"],
  [FLAG.extended, "extended attributes"],
  [FLAG.owner, "owner"],
] as const;

export function changesOf(state: State): readonly HeldChange[] {
  return [...state.open.values()].flatMap(({ path, kind, above, flags }) =>
    kind === null
      ? []
      : [
          {
            path,
            kind,
            autorun: isAutorun(path, above?.mode),
            links: above?.type === ROW.file ? above.links : 1,
            size: above?.type === ROW.file || above?.type === ROW.link ? above.size : 0,
            mode: above?.mode ?? 0,
            attributes: ATTRIBUTES.filter(([flag]) => has({ flags }, flag)).map(([, attribute]) => attribute),
          },
        ],
  );
}

export type Chosen = {
  readonly paths: ReadonlySet<string>;
  readonly refusals: readonly PathReason[];
};

/** Selects from `among` each path listed in `paths`, and each path below a listed folder. */
export function choose(
  among: Iterable<string>,
  paths: readonly string[] | null,
  why: (path: string) => string,
): Chosen {
  if (paths === null) return { paths: new Set(among), refusals: [] };
  const wanted = new Set(paths);
  const hit = new Set<string>();
  const chosen = new Set<string>();
  // Compare per length, because thousands of listed folders may be nested.
  const lengths = [...new Set(paths.map(({ length }) => length))];
  for (const path of among) {
    for (const length of lengths) {
      if (length !== path.length && path[length] !== "/") continue;
      const name = path.slice(0, length);
      if (!wanted.has(name)) continue;
      hit.add(name);
      chosen.add(path);
    }
  }
  const missed = [...wanted].filter((path) => !hit.has(path));
  return { paths: chosen, refusals: missed.map((path) => ({ path, reason: why(path) })) };
}

/** Adds the new folders above selected changes, which could not be placed otherwise. */
export function withFolders(state: State, chosen: ReadonlySet<string>): ReadonlySet<string> {
  const all = new Set(chosen);
  const looked = new Set<string>();
  for (const path of chosen) {
    for (const folder of ancestorsOf(path)) {
      // The folders further up were visited then, too.
      if (looked.has(folder)) break;
      looked.add(folder);
      if (state.open.get(folder)?.kind === "dir") all.add(folder);
    }
  }
  return all;
}

/** Returns the selected changes that may never be applied. */
export function refusalsOf(
  { entries, open }: State,
  chosen: ReadonlySet<string>,
  isDenied: (path: string) => boolean,
): readonly PathReason[] {
  const found: PathReason[] = [];
  const known = new Map<string, string>();
  for (const path of chosen) {
    const entry = open.get(path);
    if (entry === undefined) continue;
    const refusal = refusalAt(entries, path, known);
    if (refusal !== "") found.push({ path, reason: `Cannot apply the change: ${refusal}` });
    if (isDenied(path))
      found.push({ path, reason: "Cannot apply the change: the policy does not allow writing it" });
    // Names removed together with a replaced folder.
    for (const one of replacesFolder(entry) ? entry.replaced : []) {
      const gone = entries.get(one.path);
      if ((gone === undefined || gone.type === ROW.removed) && isDenied(one.path))
        found.push({
          path,
          reason: `Cannot apply the change: it would remove '${one.path}', which the policy does not allow`,
        });
    }
  }
  return found;
}

/** Returns the refusal of the entry itself or of the nearest refused folder above. */
function refusalAt(entries: ReadonlyMap<string, Entry>, path: string, known: Map<string, string>): string {
  const before = known.get(path);
  if (before !== undefined) return before;
  const own = entries.get(path)?.refusal ?? "";
  const refusal = own !== "" || path === "" ? own : refusalAt(entries, parentOf(path), known);
  known.set(path, refusal);
  return refusal;
}

/**
 * Returns the changes whose place in the project differs from the command's view. `unchanged`: files with their old content,
 * whatever their times.
 */
export function conflictsOf(
  state: State,
  chosen: ReadonlySet<string>,
  unchanged: ReadonlySet<string> = new Set(),
): readonly PathReason[] {
  const found: PathReason[] = [];
  const folders = new Map<string, string | null>();
  for (const path of chosen) {
    const entry = state.open.get(path);
    if (entry === undefined) continue;
    const own = unchanged.has(path) ? null : ownComplaint(state, entry);
    const reason = folderComplaint(state, parentOf(path), folders) ?? own;
    if (reason !== null) found.push({ path, reason });
  }
  return found;
}

function ownComplaint(state: State, entry: Entry): string | null {
  const { path, below, type } = entry;
  const then = state.seen.get(path)?.below;
  if (below === null) {
    if (isOurs(state, path, null)) return null;
    // Without an earlier scan, only the layer's copy-up mark shows that a file existed, perhaps at this path.
    const early = state.seen === state.entries && has(entry, FLAG.copied);
    const copied =
      early && (type === ROW.folder || !isUntouched(state, parentOf(path), belowOf(state, parentOf(path))));
    return type === ROW.removed || copied || (then !== undefined && then !== null)
      ? "The path was removed since the command ran"
      : null;
  }
  if (!isUntouched(state, path, below)) return "The path was changed since the command began";
  if (then !== undefined && !isOurs(state, path, below) && then?.inode !== below.inode)
    return "The path was replaced by another file since the command ran";
  if (!replacesFolder(entry)) return null;
  const changed = entry.replaced.find((one) => !isUntouched(state, one.path, one.sight));
  return changed === undefined ? null : `'${changed.path}' inside was changed since the command began`;
}

/** Checks the folders above a change: the command saw each as a folder of the project. */
function folderComplaint(state: State, folder: string, known: Map<string, string | null>): string | null {
  const before = known.get(folder);
  if (before !== undefined) return before;
  const above = folder === "" ? null : folderComplaint(state, parentOf(folder), known);
  const complaint = above ?? mergedComplaint(state, folder);
  known.set(folder, complaint);
  return complaint;
}

function mergedComplaint(state: State, folder: string): string | null {
  const entry = state.entries.get(folder);
  // A new or replacing folder is a change of its own.
  if (folder === "" || entry === undefined || entry.kind === "dir") {
    const gone =
      entry?.kind === "dir" &&
      (state.journal.applied.has(folder) || (has(entry, FLAG.copied) && !isOurs(state, folder, entry.below)));
    return gone ? `The folder '${folder}' around it no longer exists` : null;
  }
  const now = entry.below;
  if (now === null || isOurs(state, folder, now) || state.journal.applied.has(folder)) return null;
  const then = state.seen.get(folder)?.below;
  const other = then !== undefined && then?.inode !== now.inode;
  if (!other && !has(entry, FLAG.copiedOther)) return null;
  return `The folder '${folder}' around it was replaced since the command began`;
}

function belowOf({ entries }: State, path: string): Sight | null {
  return entries.get(path)?.below ?? null;
}

/** Changes of content, name or attributes set the ctime; a copy-up does not. */
function isUntouched(state: State, path: string, sight: Sight | null): boolean {
  return sight === null || sight.ctime <= state.held.mountedAt || isOurs(state, path, sight);
}

/** Whether the path is as the last apply or undo left it; for null: whether an undo removed it. */
function isOurs({ journal }: State, path: string, sight: Sight | null): boolean {
  const left = journal.left.get(path);
  if (sight !== null) return left !== undefined && left.inode === sight.inode && left.ctime === sight.ctime;
  return left === undefined && journal.undone.has(path);
}

export function byBytes(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
