/** The order of one file operation and its answer: the bytes of `substrate-init file` (world/native/files/order.h). */
import { decodeFields, decodeNumber } from "../linux/frame-codec.ts";

/** A replacement in a file. `hunk`: whole lines; `line`: where they are expected, from 1. */
export type FileEdit = {
  readonly old: string;
  readonly new: string;
  readonly line?: number;
  readonly hunk?: boolean;
  /** Every match, in place of exactly one. */
  readonly all?: boolean;
  /** The first match, in place of exactly one. */
  readonly first?: boolean;
};

export type FileChange =
  | { readonly kind: "write" | "create"; readonly path: string; readonly content: Uint8Array }
  | { readonly kind: "edit" | "remove"; readonly path: string; readonly edits: readonly FileEdit[] };

export type FileOrder =
  | {
      readonly op: "read" | "raw";
      readonly path: string;
      readonly first: number;
      readonly limit: number;
      readonly bytes: number;
    }
  | { readonly op: "change"; readonly changes: readonly FileChange[] }
  | {
      readonly op: "glob" | "grep";
      readonly path: string;
      readonly globs: readonly string[];
      readonly pattern?: string;
      readonly limit: number;
      readonly all: boolean;
      readonly ignoreCase: boolean;
      readonly fixed: boolean;
      readonly namesOnly: boolean;
    };

/** Bounds of `substrate-init file`: changes and edits of one order, patterns, and bytes of one changed file. */
export const FILE_LIMITS = { changes: 64, edits: 512, globs: 64, content: 10 * 1024 * 1024 } as const;

/** Arguments that make `substrate-init` carry out an order from its standard input. */
export const FILE_WORDS = ["file"] as const;

const TAG = {
  op: 1,
  path: 2,
  kind: 3,
  content: 4,
  old: 5,
  new: 6,
  line: 7,
  flags: 8,
  first: 9,
  limit: 10,
  bytes: 11,
  glob: 12,
  pattern: 13,
} as const;

const KIND = { write: 0, create: 1, edit: 2, remove: 3 } as const;

type Value = string | number | Uint8Array;

export function encodeFileOrder(order: FileOrder): Buffer {
  const parts: Uint8Array[] = [];
  const put = (tag: number, value: Value): void => {
    const bytes = bytesOf(value);
    const header = Buffer.alloc(8);
    header.writeUInt16LE(tag, 0);
    header.writeUInt32LE(bytes.length, 4);
    parts.push(header, bytes);
  };
  put(TAG.op, order.op);
  if (order.op === "change") for (const change of order.changes) putChange(put, change);
  else putQuestion(put, order);
  return Buffer.concat(parts);
}

function putChange(put: (tag: number, value: Value) => void, change: FileChange): void {
  put(TAG.path, change.path);
  put(TAG.kind, KIND[change.kind]);
  if ("content" in change) return put(TAG.content, change.content);
  for (const edit of change.edits) {
    put(TAG.old, edit.old);
    put(TAG.new, edit.new);
    if (edit.line !== undefined) put(TAG.line, edit.line);
    put(TAG.flags, flags([edit.all, edit.hunk, edit.first]));
  }
}

function putQuestion(
  put: (tag: number, value: Value) => void,
  order: Exclude<FileOrder, { readonly op: "change" }>,
): void {
  put(TAG.path, order.path);
  put(TAG.limit, order.limit);
  if ("bytes" in order) {
    put(TAG.first, order.first);
    return put(TAG.bytes, order.bytes);
  }
  put(TAG.flags, flags([order.all, order.ignoreCase, order.fixed, order.namesOnly]));
  for (const glob of order.globs) put(TAG.glob, glob);
  if (order.pattern !== undefined) put(TAG.pattern, order.pattern);
}

function flags(bits: readonly (boolean | undefined)[]): number {
  return bits.reduce((sum, bit, at) => sum + (bit === true ? 2 ** at : 0), 0);
}

function bytesOf(value: Value): Uint8Array {
  if (typeof value === "string") return Buffer.from(value);
  if (typeof value !== "number") return value;
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

/** A path and what belongs to it. Absent: not said. */
export type FileEntry = {
  readonly path: string;
  readonly kind?: string;
  readonly size?: number;
  readonly count?: number;
  readonly text?: Buffer;
  readonly line?: number;
  readonly lines?: number;
};

/** `word`: `ok`, or why nothing was done; `error` is an errno, 0: no call failed. */
export type FileAnswer = {
  readonly word: string;
  readonly error: number;
  readonly change: number;
  readonly edit: number;
  readonly count: number;
  readonly cut: boolean;
  readonly entries: readonly FileEntry[];
};

const DONE = {
  word: 32,
  path: 33,
  error: 34,
  change: 35,
  edit: 36,
  count: 37,
  text: 38,
  line: 39,
  lines: 40,
  size: 41,
  cut: 42,
  kind: 43,
} as const;

/** Decodes an answer. Throws for bytes that are none: an older or broken program. */
export function decodeFileAnswer(bytes: Buffer): FileAnswer {
  const answer = { word: "", error: 0, change: 0, edit: 0, count: 0, cut: false };
  const entries: { -readonly [Key in keyof FileEntry]: FileEntry[Key] }[] = [];
  for (const [tag, value] of decodeFields(bytes)) {
    const entry = entries.at(-1);
    if (tag === DONE.word) answer.word = value.toString();
    else if (tag === DONE.path) entries.push({ path: value.toString() });
    else if (tag === DONE.cut) answer.cut = true;
    else if (tag === DONE.error) answer.error = decodeNumber(value);
    else if (tag === DONE.change) answer.change = decodeNumber(value);
    else if (tag === DONE.edit) answer.edit = decodeNumber(value);
    else if (entry === undefined) throw new RangeError(`Field ${tag} of a file answer has no path`);
    else if (tag === DONE.text) entry.text = value;
    else if (tag === DONE.kind) entry.kind = value.toString();
    else if (tag === DONE.line) entry.line = decodeNumber(value);
    else if (tag === DONE.lines) entry.lines = decodeNumber(value);
    else if (tag === DONE.size) entry.size = decodeNumber(value);
    else if (tag === DONE.count) entry.count = answer.count = decodeNumber(value);
  }
  if (answer.word === "") throw new RangeError("The answer of a file operation is empty");
  return { ...answer, entries };
}
