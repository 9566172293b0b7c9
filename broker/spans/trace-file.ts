/**
 * The append-only record: one span a line. A line is written with one `write` before anybody acts on it, so it
 * survives the broker's death at any instant; `settle` makes it survive a power cut too.
 */
import {
  appendFileSync,
  closeSync,
  fdatasync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  writeSync,
} from "node:fs";
import { type Head, linkLine } from "./chain.ts";

const NEWLINE = 0x0a;
const TAIL_CHUNK = 64 * 1024;

/** Where a line lies in the file, in bytes, without its newline. */
export type Extent = { readonly offset: number; readonly length: number };

export class TraceFile {
  readonly path: string;
  readonly #file: number;
  #size: number;
  #closed = false;
  #head: Head;
  #sync: Promise<void> | undefined;
  #nextSync: Promise<void> | undefined;

  /** Opens or makes the file. A last line that was cut by a crash is moved to `<path>.torn`; it was never acted on. */
  constructor(path: string, headOf: (lastLine: string | undefined) => Head) {
    this.path = path;
    this.#file = openSync(path, "a+", 0o600);
    this.#size = dropTornLine(this.#file, path);
    this.#head = headOf(lastLine(this.#file, this.#size));
  }

  get head(): Head {
    return this.#head;
  }

  get size(): number {
    return this.#size;
  }

  /** Writes one line. Throws the kernel's error (a full disk) with nothing half-written left behind. */
  append(record: Readonly<Record<string, unknown>>): Extent {
    if (this.#closed) throw new Error(`The trace '${this.path}' is closed`);
    const { line, head } = linkLine(record, this.#head);
    const bytes = Buffer.from(`${line}\n`, "utf8");
    this.#write(bytes);
    const extent = { offset: this.#size, length: bytes.length - 1 };
    this.#size += bytes.length;
    this.#head = head;
    return extent;
  }

  /** Settles when every line written before the call is on the disk. All who wait meanwhile share one fdatasync. */
  settle(): Promise<void> {
    if (this.#sync === undefined) return this.#startSync();
    this.#nextSync ??= this.#sync.then(() => this.#startSync());
    return this.#nextSync;
  }

  /** Whether the line that ends at an offset is the one that made this head. */
  endsWith(head: Head, offset: number): boolean {
    if (head.hash === null) return offset === 0;
    const tail = `,"hash":"${head.hash}"}\n`;
    if (offset < tail.length || offset > this.#size) return false;
    return this.read({ offset: offset - tail.length, length: tail.length }) === tail;
  }

  read(extent: Extent): string {
    const bytes = Buffer.allocUnsafe(extent.length);
    let done = 0;
    while (done < extent.length) {
      const count = readSync(this.#file, bytes, done, extent.length - done, extent.offset + done);
      if (count === 0)
        throw new Error(`The trace '${this.path}' ends before byte ${extent.offset + extent.length}`);
      done += count;
    }
    return bytes.toString("utf8");
  }

  close(): void {
    this.#closed = true;
    closeSync(this.#file);
  }

  #write(bytes: Buffer): void {
    let done = 0;
    try {
      while (done < bytes.length) done += writeSync(this.#file, bytes, done);
    } catch (error) {
      ftruncateSync(this.#file, this.#size);
      throw error;
    }
  }

  #startSync(): Promise<void> {
    this.#nextSync = undefined;
    this.#sync = new Promise<void>((resolve, reject) => {
      fdatasync(this.#file, (error) => (error === null ? resolve() : reject(error)));
    }).finally(() => {
      this.#sync = undefined;
    });
    return this.#sync;
  }
}

function dropTornLine(file: number, path: string): number {
  const size = fstatSync(file).size;
  const end = lastNewline(file, size) + 1;
  if (end === size) return size;
  const torn = Buffer.alloc(size - end);
  readSync(file, torn, 0, torn.length, end);
  appendFileSync(`${path}.torn`, Buffer.concat([torn, Buffer.from("\n")]), { mode: 0o600 });
  ftruncateSync(file, end);
  return end;
}

function lastLine(file: number, size: number): string | undefined {
  if (size === 0) return undefined;
  const start = lastNewline(file, size - 1) + 1;
  const bytes = Buffer.alloc(size - 1 - start);
  readSync(file, bytes, 0, bytes.length, start);
  return bytes.toString("utf8");
}

/** The offset of the last newline before `end`; -1 when there is none. */
function lastNewline(file: number, end: number): number {
  const chunk = Buffer.alloc(TAIL_CHUNK);
  for (let to = end; to > 0; ) {
    const from = Math.max(0, to - TAIL_CHUNK);
    readSync(file, chunk, 0, to - from, from);
    const found = chunk.subarray(0, to - from).lastIndexOf(NEWLINE);
    if (found !== -1) return from + found;
    to = from;
  }
  return -1;
}
