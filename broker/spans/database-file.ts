import { closeSync, openSync, readSync } from "node:fs";
import { join } from "node:path";

/** Of LMDB's first page (mdb.c, MDB_MAGIC): behind the header of the page. */
const MAGIC = 0xbeefc0de;
const MAGIC_AT = 24;

/** The database is none that can be opened; shown without a stack trace. */
export class DatabaseRefused extends Error {
  override readonly name = "DatabaseRefused";
}

/** Throws for a file that LMDB did not write: opening it would end the process without a word. One that is not there is made. */
export function refuseDamaged(folder: string): void {
  const path = join(folder, "data.mdb");
  const begin = beginOf(path, MAGIC_AT + 4);
  if (begin.length === 0 || (begin.length > MAGIC_AT && begin.readUInt32LE(MAGIC_AT) === MAGIC)) return;
  throw new DatabaseRefused(
    `The database '${path}' is damaged. Move the folder away: what the trace knows is read from there again`,
  );
}

/** Empty for a file that is not there. */
function beginOf(path: string, length: number): Buffer {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return Buffer.alloc(0);
    throw error;
  }
  try {
    const bytes = Buffer.alloc(length);
    return bytes.subarray(0, readSync(file, bytes, 0, length, 0));
  } finally {
    closeSync(file);
  }
}
