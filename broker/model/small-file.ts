/** Reading what an agent may have put there: never follows a link, never waits for a pipe, never reads more than asked. */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

/** The text of a plain file of that user with at most `most` bytes; undefined for everything else. */
export function readSmallFile(path: string, most: number, uid: number): string | undefined {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  } catch {
    // Missing, a link, or not ours to read: in each case there is no such file of this user.
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
