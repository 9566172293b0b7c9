/** Decodes the rows of a walk over an overlay's upper layer (world/native/changes/overlay_walk.h), and the states in them. */
import { setImmediate as turn } from "node:timers/promises";
import type { HeldKind } from "../model/held.ts";
import { isAutorun } from "./autorun.ts";
import { fieldsOf } from "./native-session.ts";

/** Letters of rows; the first three are the types of states ({@link Sight}) too. */
export const ROW = {
  file: "f",
  folder: "d",
  link: "l",
  /** Pipe, socket or device. */
  other: "x",
  /** A lower name under a whiteout, or in a folder that hides the lower folder. */
  removed: "w",
  /** An entry of a lower folder, before the row that removes, replaces or hides the folder. */
  below: ".",
  /** In listings: a path that cannot be read. */
  unread: "u",
} as const;

/** Letters of flags, for differences from the lower entry. */
export const FLAG = {
  noLowerFolder: "n",
  /** The folder hides the lower folder. */
  opaque: "o",
  attributes: "a",
  mtime: "t",
  /** Type or content. */
  content: "c",
  /** Copied up by the kernel. */
  copied: "g",
  /** Copied up from another inode than the present lower inode. */
  copiedOther: "G",
  /** Differs, or a new entry has one. */
  accessList: "l",
  /** `user.` attributes, likewise. */
  extended: "e",
  owner: "w",
} as const;

/** One row, as sent. States are texts of {@link Sight}; "" for a missing entry. */
export type Row = {
  /** A letter of {@link ROW}. */
  readonly type: string;
  /** Relative to both trees, one letter per byte; "" is their root. */
  readonly path: string;
  /** Letters of {@link FLAG}. */
  readonly flags: string;
  /** Why the entry can never be applied; empty for an applicable entry. */
  readonly refusal: string;
  readonly above: string;
  readonly below: string;
};

const FIELDS = 6;

export function* rowsOf(fields: readonly string[]): Generator<Row> {
  for (let at = 0; at + FIELDS <= fields.length; at += FIELDS) {
    const [type = "", path = "", flags = "", refusal = "", above = "", below = ""] = fields.slice(
      at,
      at + FIELDS,
    );
    yield { type, path, flags, refusal, above, below };
  }
}

/** Bytes of rows decoded in one turn of the event loop: a few milliseconds. Longer than any field. */
const PER_TURN = 128 * 1024;

/** Yields the rows in `bytes`, and to other calls in between. Throws the signal's reason when aborted. */
async function* rowsIn(bytes: Buffer, signal?: AbortSignal): AsyncGenerator<readonly Row[]> {
  let rest: readonly string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.lastIndexOf(0, at + PER_TURN) + 1;
    if (end <= at) return;
    const fields = [...rest, ...fieldsOf(bytes.subarray(at, end))];
    const whole = fields.length - (fields.length % FIELDS);
    yield [...rowsOf(fields.slice(0, whole))];
    rest = fields.slice(whole);
    at = end;
    await turn();
    signal?.throwIfAborted();
  }
}

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
export type Entry = Omit<Row, "above" | "below"> & {
  readonly above: Sight | null;
  readonly below: Sight | null;
  /** Paths below a replaced folder. */
  readonly replaced: readonly Below[];
  readonly kind: HeldKind | null;
};

/**
 * Returns entries by path, folders before their content; the project itself is "". `bytes`: fields of rows, each with its NUL. A command
 * that wrote 100,000 files takes seconds here, so others have their turns meanwhile. Throws the signal's reason when aborted.
 */
export async function entriesOf(bytes: Buffer, signal?: AbortSignal): Promise<ReadonlyMap<string, Entry>> {
  const entries = new Map<string, Entry>();
  let replaced: Below[] = [];
  for await (const rows of rowsIn(bytes, signal)) {
    for (const row of rows) {
      const below = sightOf(row.below);
      if (row.type === ROW.below && below !== null) {
        replaced.push({ path: row.path, sight: below });
        continue;
      }
      const bare = { ...row, above: sightOf(row.above), below, replaced };
      entries.set(row.path, { ...bare, kind: kindOf(bare) });
      replaced = [];
    }
  }
  return withOtherNames(entries);
}

/** Marks unchanged names as changed if a hard link makes them one file with a changed name. */
function withOtherNames(entries: ReadonlyMap<string, Entry>): ReadonlyMap<string, Entry> {
  const several = [...entries.values()].filter(
    ({ type, above }) => type === ROW.file && (above?.links ?? 0) > 1,
  );
  const changed = new Set(several.filter(({ kind }) => kind !== null).map(({ above }) => above?.inode));
  const joined = several.filter(({ kind, above }) => kind === null && changed.has(above?.inode));
  if (joined.length === 0) return entries;
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

/** Returns the mode in the text of a state; undefined for a missing entry. Much cheaper than {@link sightOf}. */
export function modeIn(text: string): number | undefined {
  return text === "" ? undefined : Number(text.split(" ", 2)[1]);
}

export function has({ flags }: Pick<Row, "flags">, flag: (typeof FLAG)[keyof typeof FLAG]): boolean {
  return flags.includes(flag);
}

const IN_GIT = /(?:^|\/)\.git\//;

/**
 * Returns null for an unchanged copy-up, and for git's settings and hooks written again as they were: git looks at no times of theirs,
 * `git submodule update` writes them each time, and a policy that denies the name would refuse the whole apply.
 */
function kindOf(entry: Omit<Entry, "kind">): HeldKind | null {
  const { path, type, below } = entry;
  if (path === "") return null;
  if (type === ROW.removed) return "delete";
  const same = below !== null && !has(entry, FLAG.noLowerFolder) && below.type === type;
  if (type === ROW.folder) return same ? (has(entry, FLAG.attributes) ? "mode" : null) : "dir";
  if (same && !has(entry, FLAG.content)) {
    const isLater = has(entry, FLAG.mtime) && !(IN_GIT.test(path) && isAutorun(path));
    return has(entry, FLAG.attributes) || isLater ? "mode" : null;
  }
  if (type === ROW.link) return "link";
  return below === null ? "write" : "mod";
}

/** Whether the entry removes or replaces a whole folder. */
export function replacesFolder(entry: Entry): boolean {
  return entry.below?.type === ROW.folder && (entry.type !== ROW.folder || has(entry, FLAG.opaque));
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
