/** What `substrate-init held` says of a layer and of the project below it (world/native/changes/held_scan.h). */
import type { HeldKind } from "../model/held.ts";

/** How one name was found. Times are nanoseconds since the epoch. */
export type Sight = {
  readonly type: string;
  readonly mode: number;
  readonly size: number;
  readonly mtime: bigint;
  readonly inode: bigint;
  readonly ctime: bigint;
  readonly links: number;
  /** As it was told: what the native part is given back to compare with. */
  readonly text: string;
};

/** Something that goes with the folder it lies in. */
export type Below = { readonly path: string; readonly sight: Sight };

/** One entry of the upper layer, or a name that it hides. */
export type Entry = {
  readonly path: string;
  /** `f`, `d`, `l`, `w` for what is gone, `x` for anything else. */
  readonly type: string;
  readonly flags: string;
  /** Why it can never be applied. */
  readonly refusal: string;
  readonly above: Sight | null;
  readonly below: Sight | null;
  /** What lies below what it replaces. */
  readonly replaced: readonly Below[];
  readonly kind: HeldKind | null;
};

const FIELDS = 6;

/** Each entry under its path, folders before what they hold; the project itself is "". */
export function entriesOf(fields: readonly string[]): ReadonlyMap<string, Entry> {
  const entries = new Map<string, Entry>();
  let replaced: Below[] = [];
  for (let at = 0; at + FIELDS <= fields.length; at += FIELDS) {
    const [type = "", path = "", flags = "", refusal = "", up = "", down = ""] = fields.slice(
      at,
      at + FIELDS,
    );
    const below = sightOf(down);
    if (type === "." && below !== null) {
      replaced.push({ path, sight: below });
      continue;
    }
    const bare = { path, type, flags, refusal, above: sightOf(up), below, replaced };
    entries.set(path, { ...bare, kind: kindOf(bare) });
    replaced = [];
  }
  return withOtherNames(entries);
}

/** Names that became one file with something that changed: on their own they would look as they were. */
function withOtherNames(entries: ReadonlyMap<string, Entry>): ReadonlyMap<string, Entry> {
  const several = [...entries.values()].filter(({ type, above }) => type === "f" && (above?.links ?? 0) > 1);
  const changed = new Set(several.filter(({ kind }) => kind !== null).map(({ above }) => above?.inode));
  const joined = several.filter(({ kind, above }) => kind === null && changed.has(above?.inode));
  return new Map([
    ...entries,
    ...joined.map((entry): [string, Entry] => [entry.path, { ...entry, kind: "mode" }]),
  ]);
}

export function sightOf(text: string): Sight | null {
  if (text === "") return null;
  const [type = "", mode, size, mtime = "0", inode = "0", ctime = "0", links] = text.split(" ");
  return {
    type,
    mode: Number(mode),
    size: Number(size),
    mtime: BigInt(mtime),
    inode: BigInt(inode),
    ctime: BigInt(ctime),
    links: Number(links),
    text,
  };
}

/** Null for what was copied up on the way and is as it was. */
function kindOf({ path, type, flags, below }: Omit<Entry, "kind">): HeldKind | null {
  if (path === "") return null;
  if (type === "w") return "delete";
  const same = below !== null && !flags.includes("n") && below.type === type;
  if (type === "d") return same ? (flags.includes("a") ? "mode" : null) : "dir";
  if (same && !flags.includes("c")) return /[at]/.test(flags) ? "mode" : null;
  if (type === "l") return "link";
  return below === null ? "write" : "mod";
}

/** Whether the entry takes a whole folder away, or its place. */
export function replacesFolder(entry: Entry): boolean {
  return entry.below?.type === "d" && (entry.type !== "d" || entry.flags.includes("o"));
}

export function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}

/** Of a path in a folder: the folders above it, nearest first, "" last. */
export function* ancestorsOf(path: string): Generator<string> {
  let at = path;
  while (at !== "") {
    at = parentOf(at);
    yield at;
  }
}
