/** Decodes the scan of a layer and its project by `substrate-init held` (world/native/changes/held_scan.h). */
import type { HeldKind } from "../model/held.ts";

/** State of one name. Times are nanoseconds since the epoch. */
export type Sight = {
  readonly type: string;
  readonly mode: number;
  readonly size: number;
  readonly mtime: bigint;
  readonly inode: bigint;
  readonly ctime: bigint;
  readonly links: number;
  /** The original text, sent back to the native part for comparison. */
  readonly text: string;
};

/** A path removed together with the folder above. */
export type Below = { readonly path: string; readonly sight: Sight };

/** An entry of the upper layer, or a hidden name. */
export type Entry = {
  readonly path: string;
  /** `f`: file; `d`: folder; `l`: link; `w`: removed; `x`: any other type. */
  readonly type: string;
  readonly flags: string;
  /** Why the entry can never be applied; empty for an applicable entry. */
  readonly refusal: string;
  readonly above: Sight | null;
  readonly below: Sight | null;
  /** Paths below a replaced folder. */
  readonly replaced: readonly Below[];
  readonly kind: HeldKind | null;
};

const FIELDS = 6;

/** Returns entries by path, folders before their content; the project itself is "". */
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

/** Marks unchanged names as changed if a hard link makes them one file with a changed name. */
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

/** Returns null for an unchanged copy-up. */
function kindOf({ path, type, flags, below }: Omit<Entry, "kind">): HeldKind | null {
  if (path === "") return null;
  if (type === "w") return "delete";
  const same = below !== null && !flags.includes("n") && below.type === type;
  if (type === "d") return same ? (flags.includes("a") ? "mode" : null) : "dir";
  if (same && !flags.includes("c")) return /[at]/.test(flags) ? "mode" : null;
  if (type === "l") return "link";
  return below === null ? "write" : "mod";
}

/** Whether the entry removes or replaces a whole folder. */
export function replacesFolder(entry: Entry): boolean {
  return entry.below?.type === "d" && (entry.type !== "d" || entry.flags.includes("o"));
}

export function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}

/** Yields the folders above a relative path, nearest first, "" last. */
export function* ancestorsOf(path: string): Generator<string> {
  let at = path;
  while (at !== "") {
    at = parentOf(at);
    yield at;
  }
}
