/**
 * The append-only record: one span per line, in files with one continuous chain. A line is written with one `write` before the
 * broker acts on it, so it survives the broker's death at any instant; `settle` also protects it against a power cut.
 */
import {
  closeSync,
  existsSync,
  fdatasync,
  ftruncateSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { EMPTY_HEAD, type Head, linkLine, readLink } from "./chain.ts";
import { dropTornLine, firstSeq, lastLine, lastLineOf } from "./file-ends.ts";
import { type Line, readBatches } from "./lines.ts";
import { openOrNothing, partPath, rotatedParts, type TracePart } from "./trace-parts.ts";
import { type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";
import { promisify } from "node:util";
import type { Span } from "../../schemas/generated/types.ts";
import type { OnFault } from "./span-index.ts";

/** A line's place in bytes, without its newline. `file` is the number of that file's first line. */
export type Extent = { readonly file: number; readonly offset: number; readonly length: number };

/** The position after a line. */
export type Position = { readonly file: number; readonly offset: number };

/** The trace cannot be continued; shown without a stack trace. */
export class TraceRefused extends Error {
  override readonly name = "TraceRefused";
}

export class TraceLog {
  readonly path: string;
  #live: number;
  /** The number of the live file's first line, also while the file is empty. */
  #first: number;
  #size: number;
  #closed = false;
  #head: Head;
  #end: Position;
  #sync: Promise<void> | undefined;
  #nextSync: Promise<void> | undefined;
  /** Files rotated since the last sync: their contents may not be on the disk yet. */
  #unsynced: number[] = [];

  /** Opens or creates the trace, and completes or reverts a rotation interrupted by a crash. */
  constructor(path: string) {
    this.path = path;
    rmSync(nextPath(path), { force: true });
    this.#live = openSync(path, "a+", 0o600);
    this.#size = dropTornLine(this.#live, path);
    const before = rotatedParts(path).at(-1);
    const last =
      this.#size > 0 || before === undefined ? lastLine(this.#live, this.#size) : lastLineOf(before.path);
    this.#head = headOfLastLine(last, this.#size > 0 || before === undefined ? path : before.path);
    this.#first = firstSeq(this.#live, this.#size) ?? this.#head.seq + 1;
    this.#end =
      this.#size > 0 || before === undefined
        ? { file: this.#first, offset: this.#size }
        : { file: before.first, offset: before.size };
  }

  get head(): Head {
    return this.#head;
  }

  /** Size of the live file in bytes. */
  get size(): number {
    return this.#size;
  }

  /** The position after the last line. */
  get end(): Position {
    return this.#end;
  }

  /** Writes one line. Throws the kernel's error (a full disk), leaving no partial line behind. */
  append(record: Readonly<Record<string, unknown>>): Extent {
    return this.appendAll([record])[0] as Extent;
  }

  /** Writes several lines in order with one `write`: all or none. */
  appendAll(records: readonly Readonly<Record<string, unknown>>[]): readonly Extent[] {
    if (this.#closed) throw new Error(`The trace '${this.path}' is closed`);
    let [head, text] = [this.#head, ""];
    let offset = this.#size;
    const extents = records.map((record): Extent => {
      const linked = linkLine(record, head);
      const length = Buffer.byteLength(linked.line);
      const extent = { file: this.#first, offset, length };
      [head, text] = [linked.head, `${text}${linked.line}\n`];
      offset += length + 1;
      return extent;
    });
    this.#write(Buffer.from(text, "utf8"));
    this.#size = offset;
    this.#head = head;
    this.#end = { file: this.#first, offset };
    return extents;
  }

  /**
   * Renames the live file after its first line's number and begins a new live file. The new file is created first, so that a full
   * disk stops the rotation before any rename. A kill between the two renames leaves no live file; the next broker creates one,
   * and its chain continues from the last line of the newest file. Throws the kernel's error, with the old file still live.
   */
  rotate(): void {
    if (this.#closed || this.#size === 0) return;
    const next = nextPath(this.path);
    const moved = partPath(this.path, this.#first);
    if (existsSync(moved)) throw new Error(`Cannot rotate the trace: '${moved}' exists already`);
    rmSync(next, { force: true });
    const live = openSync(next, "ax+", 0o600);
    try {
      renameSync(this.path, moved);
      this.#replaceBy(next, moved);
    } catch (error) {
      closeSync(live);
      rmSync(next, { force: true });
      throw error;
    }
    closeAfter(this.#sync, this.#live);
    this.#unsynced.push(this.#first);
    this.#live = live;
    this.#first = this.#head.seq + 1;
    this.#size = 0;
  }

  /** Resolves once every line written before the call is on the disk. Concurrent callers share one fdatasync. */
  settle(): Promise<void> {
    if (this.#sync === undefined) return this.#startSync();
    this.#nextSync ??= this.#sync.then(() => this.#startSync());
    return this.#nextSync;
  }

  /** Whether the line ending at this position has the hash of this head. */
  endsWith(head: Head, { file, offset }: Position): boolean {
    if (head.hash === null) return offset === 0;
    const tail = `,"hash":"${head.hash}"}\n`;
    if (offset < tail.length) return false;
    return this.read({ file, offset: offset - tail.length, length: tail.length }) === tail;
  }

  /** Reads a line; undefined for a missing or shorter file. */
  read(extent: Extent): string | undefined {
    if (extent.file === this.#first)
      return extent.offset + extent.length > this.#size ? undefined : readAt(this.#live, extent);
    const file = openOrNothing(partPath(this.path, extent.file));
    if (file === undefined) return undefined;
    try {
      return readAt(file, extent);
    } finally {
      closeSync(file);
    }
  }

  /** Reads the lines from a position on, chunk by chunk, across all following files. */
  async *lines(from: Position): AsyncGenerator<{ readonly file: number; readonly lines: readonly Line[] }> {
    const parts = this.parts().filter(({ first }) => first >= from.file);
    const files = [...parts, { first: this.#first, path: this.path }];
    for (const { first, path } of files) {
      const offset = first === from.file ? from.offset : 0;
      for await (const lines of readBatches(path, offset)) yield { file: first, lines };
    }
  }

  /** Returns the number of bytes after a position. */
  bytesFrom({ file, offset }: Position): number {
    const parts = this.parts().filter(({ first }) => first >= file);
    return parts.reduce((sum, { size }) => sum + size, this.#size) - offset;
  }

  /** The numbers of all files' first lines, oldest first. */
  files(): readonly number[] {
    return [...this.parts().map(({ first }) => first), this.#first];
  }

  /** The rotated files, oldest first. */
  parts(): readonly TracePart[] {
    return rotatedParts(this.path);
  }

  /** Removes a rotated file. */
  drop(first: number): void {
    this.#unsynced = this.#unsynced.filter((one) => one !== first);
    rmSync(partPath(this.path, first), { force: true });
  }

  close(): void {
    this.#closed = true;
    closeSync(this.#live);
  }

  #replaceBy(next: string, moved: string): void {
    try {
      renameSync(next, this.path);
    } catch (error) {
      renameSync(moved, this.path);
      throw error;
    }
  }

  #write(bytes: Buffer): void {
    let done = 0;
    try {
      while (done < bytes.length) done += writeSync(this.#live, bytes, done);
    } catch (error) {
      ftruncateSync(this.#live, this.#size);
      throw error;
    }
  }

  #startSync(): Promise<void> {
    this.#nextSync = undefined;
    const rotated = this.#unsynced;
    const older = rotated.map((first) => partPath(this.path, first));
    this.#sync = syncAll(this.#live, older)
      .then(() => {
        this.#unsynced = this.#unsynced.filter((first) => !rotated.includes(first));
      })
      .finally(() => {
        this.#sync = undefined;
      });
    return this.#sync;
  }
}

/** Closes a rotated file once no sync of the file is in progress. */
function closeAfter(sync: Promise<void> | undefined, file: number): void {
  if (sync === undefined) return closeSync(file);
  const close = (): void => closeSync(file);
  sync.then(close, close);
}

function readAt(file: number, { offset, length }: Extent): string | undefined {
  const bytes = Buffer.allocUnsafe(length);
  for (let done = 0; done < length; ) {
    const count = readSync(file, bytes, done, length - done, offset + done);
    if (count === 0) return undefined;
    done += count;
  }
  return bytes.toString("utf8");
}

/** Path of the next live file. */
function nextPath(path: string): string {
  return `${path}.next`;
}

/** Returns the head after the last line. Throws for a last line that is not a span, since the chain cannot continue from it. */
function headOfLastLine(line: string | undefined, path: string): Head {
  if (line === undefined) return EMPTY_HEAD;
  const link = readLink(Buffer.from(line, "utf8"));
  if ("hash" in link) return { seq: link.seq, hash: link.hash };
  throw new TraceRefused(
    `The last line of '${path}' cannot be continued: ${link.wrong}. 'substrate trace verify' shows more; move the file away to continue without it`,
  );
}

const dataSync = promisify(fdatasync);

/** Syncs the data of `live` and of rotated files to the disk; after rotations, also the folder with their names. */
async function syncAll(live: number, beside: readonly string[]): Promise<void> {
  for (const path of beside) await syncPath(path);
  await dataSync(live);
  const [first] = beside;
  if (first !== undefined) await syncPath(dirname(first));
}

/** A missing file was dropped and needs no sync. */
async function syncPath(path: string): Promise<void> {
  let file: FileHandle;
  try {
    file = await open(path, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    throw error;
  }
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/**
 * Reads the span at the place given by the index. Reports and returns undefined for another line, or for damaged text: the file
 * was changed.
 */
export function readSpan(log: TraceLog, id: string, extent: Extent, onFault: OnFault): Span | undefined {
  const line = log.read(extent);
  const span = line === undefined ? undefined : parsed(line);
  if (span?.span_id === id) return span;
  const where = `byte ${extent.offset} of the file that begins with line ${extent.file}`;
  const what = line === undefined ? "gone" : "not the one that was written";
  onFault(`A line of the trace is ${what}; 'substrate trace verify' shows more`, new Error(where));
  return undefined;
}

/** Parses a line; undefined for damaged text, which `trace verify` reports. */
export function parsed(line: string): Span | undefined {
  try {
    const span = JSON.parse(line) as Partial<Span> | null;
    return typeof span?.span_id === "string" && Number.isSafeInteger(span.seq) ? (span as Span) : undefined;
  } catch {
    return undefined;
  }
}
