/** Reads the first and last lines of a file without reading the middle. */
import { appendFileSync, closeSync, fstatSync, ftruncateSync, openSync, readSync } from "node:fs";

const NEWLINE = 0x0a;
const CHUNK = 64 * 1024;

/**
 * Moves an unterminated last line to `<path>.torn`, and returns the remaining size. The broker never acted on an unterminated
 * line.
 */
export function dropTornLine(file: number, path: string): number {
  const size = fstatSync(file).size;
  const end = lastNewline(file, size) + 1;
  if (end === size) return size;
  const torn = Buffer.alloc(size - end);
  readSync(file, torn, 0, torn.length, end);
  appendFileSync(`${path}.torn`, Buffer.concat([torn, Buffer.from("\n")]), { mode: 0o600 });
  ftruncateSync(file, end);
  return end;
}

export function lastLine(file: number, size: number): string | undefined {
  if (size === 0) return undefined;
  const start = lastNewline(file, size - 1) + 1;
  const bytes = Buffer.alloc(size - 1 - start);
  readSync(file, bytes, 0, bytes.length, start);
  return bytes.toString("utf8");
}

/** Returns the last complete line of a closed file. */
export function lastLineOf(path: string): string | undefined {
  return withFile(path, (file) => lastLine(file, lastNewline(file, fstatSync(file).size) + 1));
}

export function firstLine(file: number, size: number): string | undefined {
  const parts: Buffer[] = [];
  for (let from = 0; from < size; from += CHUNK) {
    const chunk = Buffer.alloc(Math.min(CHUNK, size - from));
    readSync(file, chunk, 0, chunk.length, from);
    const end = chunk.indexOf(NEWLINE);
    parts.push(end === -1 ? chunk : chunk.subarray(0, end));
    if (end !== -1) return Buffer.concat(parts).toString("utf8");
  }
  return undefined;
}

/** Returns the first line of a closed file. */
export function firstLineOf(path: string): string | undefined {
  return withFile(path, (file) => firstLine(file, fstatSync(file).size));
}

function withFile<Result>(path: string, use: (file: number) => Result): Result {
  const file = openSync(path, "r");
  try {
    return use(file);
  } finally {
    closeSync(file);
  }
}

/** The offset of the last newline before `end`; -1 without a newline. */
function lastNewline(file: number, end: number): number {
  const chunk = Buffer.alloc(CHUNK);
  for (let to = end; to > 0; ) {
    const from = Math.max(0, to - CHUNK);
    readSync(file, chunk, 0, to - from, from);
    const found = chunk.subarray(0, to - from).lastIndexOf(NEWLINE);
    if (found !== -1) return from + found;
    to = from;
  }
  return -1;
}

/** Returns the number of a file's first line; undefined for an empty file, or a first line that is not a span. */
export function firstSeq(file: number, size: number): number | undefined {
  if (fstatSync(file).size === 0) return undefined;
  try {
    const { seq } = JSON.parse(firstLine(file, size) ?? "") as { seq?: unknown };
    return Number.isSafeInteger(seq) ? (seq as number) : undefined;
  } catch {
    // Not a span, ignoring: `trace verify` reports the line, and the chain continues from the last line.
    return undefined;
  }
}
