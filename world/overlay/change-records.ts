/** What `substrate-init changes` says of a layer: records that end in NUL, each beginning with a letter. */
import { errnoName } from "../model/errno.ts";

/** How a path differs from what stands below, or that it cannot be told. */
export type LayerChange = {
  readonly kind: "write" | "mod" | "delete" | "dir" | "unread";
  /** Relative, one letter for each byte (names.ts). */
  readonly path: string;
  /** `st_mode`; 0: nothing there. */
  readonly before: number;
  readonly after: number;
  /** Bytes; of what is there now. */
  readonly size: number;
};

export type LayerEnd = {
  /** By the rules of tree-hash.ts; null when nothing changed, or when not all of it could be read. */
  readonly hash: string | null;
  /** There was more than can be listed. */
  readonly full: boolean;
};

const KINDS: Readonly<Record<string, LayerChange["kind"]>> = {
  w: "write",
  m: "mod",
  d: "delete",
  f: "dir",
  u: "unread",
};

/** Takes the whole records of a piece; `from.rest` keeps what is not whole. What the last record says, once it is there. */
export function takeRecords(
  from: { rest: string },
  piece: string,
  onChange: (change: LayerChange) => void,
): LayerEnd | undefined {
  const records = (from.rest + piece).split("\0");
  from.rest = records.pop() ?? "";
  for (const record of records) {
    if (record.startsWith("E")) return endOf(record);
    if (record.startsWith("F")) throw refusalOf(record);
    onChange(changeOf(record));
  }
  return undefined;
}

/** `KIND BEFORE ' ' AFTER ' ' SIZE ' ' PATH`, the modes in octal. A path may hold spaces. */
function changeOf(record: string): LayerChange {
  const [, letter = "", before = "", after = "", size = "", path = ""] =
    /^(.)([0-7]+) ([0-7]+) (\d+) ([^]*)$/.exec(record) ?? [];
  const kind = KINDS[letter];
  if (kind === undefined) throw new Error(`The reader of changes said '${record.slice(0, 80)}'`);
  return {
    kind,
    path,
    before: Number.parseInt(before, 8),
    after: Number.parseInt(after, 8),
    size: Number(size),
  };
}

function endOf(record: string): LayerEnd {
  const [hex = "-", full = ""] = record.slice(1).split(" ");
  return { hash: hex === "-" ? null : `sha256:${hex}`, full: full !== "0" };
}

function refusalOf(record: string): Error {
  const [errno = "", ...path] = record.slice(1).split(" ");
  return new Error(`Cannot read '${path.join(" ")}': ${errnoName(Number(errno))}`);
}
