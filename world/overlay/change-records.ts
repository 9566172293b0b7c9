/** Decodes the output of `substrate-init changes`: records terminated by NUL, each starting with a letter. */
import { errnoName } from "../model/errno.ts";

/** How a path differs from the lower tree; `unread`: could not be read. */
export type LayerChange = {
  readonly kind: "write" | "mod" | "delete" | "dir" | "unread";
  /** Relative, one letter per byte (names.ts). */
  readonly path: string;
  /** `st_mode`; 0: missing. */
  readonly before: number;
  readonly after: number;
  /** Bytes of the present content. */
  readonly size: number;
};

export type LayerEnd = {
  /** By the rules of tree-hash.ts; null if nothing changed, or if part of the changes could not be read. */
  readonly hash: string | null;
  /** The reader's bound of changes was reached. */
  readonly full: boolean;
};

const KINDS: Readonly<Record<string, LayerChange["kind"]>> = {
  w: "write",
  m: "mod",
  d: "delete",
  f: "dir",
  u: "unread",
};

/**
 * Decodes the complete records of a piece and keeps the remainder in `from.rest`. Returns the content of the end record, once
 * received.
 */
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

/** Decodes `KIND BEFORE ' ' AFTER ' ' SIZE ' ' PATH`, with octal modes. A path may contain spaces. */
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
