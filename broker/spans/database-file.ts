/** The file of the LMDB database, looked at before LMDB maps it: a damaged file ends the process with a signal, and no JavaScript catches that. */
import { closeSync, fstatSync, ftruncateSync, openSync, readSync, statfsSync, writeSync } from "node:fs";
import { join } from "node:path";

/**
 * Of LMDB's `MDB_meta`, which begins 24 bytes into each of the first two pages (mdb.c of the package `lmdb`): the magic number,
 * the page size in the first record of a database, and the number of the last page.
 */
const MAGIC = 0xbeefc0de;
const MAGIC_AT = 24;
const PAGE_SIZE_AT = MAGIC_AT + 24;
const LAST_PAGE_AT = MAGIC_AT + 120;
const META_END = LAST_PAGE_AT + 8;

/** A page is at most 64 KiB (mdb.c, MAX_PAGESIZE). */
const PAGE_SIZES = [4096, 8192, 16_384, 32_768, 65_536];

/** The database cannot be opened; shown without a stack trace. */
export class DatabaseRefused extends Error {
  override readonly name = "DatabaseRefused";

  static damaged(folder: string): DatabaseRefused {
    return new DatabaseRefused(
      `The database '${join(folder, "data.mdb")}' is damaged. Move the folder away: the broker rebuilds it from the trace`,
    );
  }
}

/**
 * Throws {@link DatabaseRefused} for a file not written by LMDB, and for a reader also when the file was cut. A missing file is
 * created later.
 *
 * For a writer, a cut file is extended by zeros: LMDB reports a page of zeros as corrupted, and a page behind the file's end is a
 * SIGBUS. LMDB itself writes a file without its last pages when these are free, so a short file alone is no damage.
 */
export function prepareDatabase(folder: string, use: "read" | "write"): void {
  const file = openedFile(join(folder, "data.mdb"), use);
  if (file === undefined) return;
  try {
    const { size } = fstatSync(file);
    if (size === 0) return;
    const needed = neededSize(file);
    if (needed === undefined) throw DatabaseRefused.damaged(folder);
    if (size >= needed) return;
    if (use === "read") throw DatabaseRefused.damaged(folder);
    ftruncateSync(file, needed);
  } finally {
    closeSync(file);
  }
}

/** Bytes kept free behind the database's last page, and by how much the file grows at once. */
const ROOM = 1024 * 1024;

/**
 * Room on the disk that the database's next commits can use when a command has filled the disk: written zeros behind its last page.
 * After a commit that the kernel refuses with ENOSPC, lmdb may free memory twice, and the process aborts (seen with lmdb 3.5.6).
 */
export class DatabaseRoom {
  readonly #file: number | undefined;
  readonly #folder: string;
  readonly #alone: (act: () => boolean) => boolean;

  /**
   * @param folder with a database that LMDB has opened.
   * @param alone calls `act` while no commit is under way, which might have made the file longer since it was measured.
   */
  constructor(folder: string, alone: (act: () => boolean) => boolean) {
    this.#folder = folder;
    this.#alone = alone;
    this.#file = openedFile(join(folder, "data.mdb"), "write");
  }

  /**
   * Makes room where there is less, and returns how many bytes commits can take in all: the room, and what else the disk has. Throws
   * no error of the disk.
   */
  keep(): number {
    if (this.#file === undefined) return Number.POSITIVE_INFINITY;
    try {
      const left = this.#left(this.#file);
      if (left < ROOM) this.#alone(this.#grow);
      const { bavail, bsize } = statfsSync(this.#folder);
      return this.#left(this.#file) + bavail * bsize;
    } catch {
      // Ignoring: a disk that cannot be read now is for the commit to find out.
      return Number.POSITIVE_INFINITY;
    }
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
  }

  #left(file: number): number {
    return fstatSync(file).size - (neededSize(file) ?? 0);
  }

  readonly #grow = (): boolean => {
    if (this.#file === undefined) return false;
    try {
      return writeSync(this.#file, Buffer.alloc(ROOM), 0, ROOM, fstatSync(this.#file).size) === ROOM;
    } catch {
      return false;
    }
  };
}

/** Returns LMDB's own error about a corrupted page as {@link DatabaseRefused}, any other error as it is. */
export function refusedIfDamaged(folder: string, error: unknown): unknown {
  const damaged =
    error instanceof Error && /^MDB_(CORRUPTED|PAGE_NOTFOUND|PANIC|INVALID)\b/.test(error.message);
  return damaged ? DatabaseRefused.damaged(folder) : error;
}

/** Bytes that the pages of the file take; undefined for a file not written by LMDB. */
function neededSize(file: number): number | undefined {
  const first = bytesAt(file, 0);
  if (first === undefined || first.readUInt32LE(MAGIC_AT) !== MAGIC) return undefined;
  const pageSize = first.readUInt32LE(PAGE_SIZE_AT);
  if (!PAGE_SIZES.includes(pageSize)) return undefined;
  // Of the two pages, the one of the later transaction is in force; the last page's number never falls.
  const last = [first, bytesAt(file, pageSize)].map((meta) => meta?.readBigUInt64LE(LAST_PAGE_AT) ?? 0n);
  const pages = last.reduce((one, other) => (one > other ? one : other)) + 1n;
  const bytes = pages * BigInt(pageSize);
  return bytes > BigInt(Number.MAX_SAFE_INTEGER) ? undefined : Number(bytes);
}

function bytesAt(file: number, at: number): Buffer | undefined {
  const bytes = Buffer.alloc(META_END);
  return readSync(file, bytes, 0, META_END, at) === META_END ? bytes : undefined;
}

function openedFile(path: string, use: "read" | "write"): number | undefined {
  try {
    return openSync(path, use === "read" ? "r" : "r+");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
