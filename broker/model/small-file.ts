/** Reads files that an agent may have placed: follows no link, waits for no pipe, reads no more than requested. */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

/** Reads a plain file of the user `uid` with at most `most` bytes; undefined for everything else. */
export function readSmallFile(path: string, most: number, uid: number): string | undefined {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  } catch {
    // Missing, a link, or unreadable: all mean that the user has no such file.
    return undefined;
  }
  try {
    const stat = fstatSync(file);
    if (!stat.isFile() || stat.uid !== uid || stat.size > most) return undefined;
    const bytes = Buffer.alloc(most + 1);
    const length = readSync(file, bytes, 0, bytes.length, 0);
    return length > most ? undefined : bytes.toString("utf8", 0, length);
  } finally {
    closeSync(file);
  }
}
