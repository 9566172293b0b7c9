/**
 * Looks at paths of the host. Undefined for whatever fails: a missing or closed folder on the way, a file in place of a folder, a
 * loop of links, a name too long. None of these can be used, so no caller needs the difference.
 */
import { type BigIntStats, lstatSync, realpathSync, type Stats } from "node:fs";

/** Resolves every link. */
export function realPath(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch {
    return undefined;
  }
}

/** Follows no link at the end. */
export function lookAt(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** Whether a socket lies at the path; a link to one is none. */
export function isSocket(path: string): boolean {
  return lookAt(path)?.isSocket() === true;
}

/** As {@link lookAt}, with times in nanoseconds, at twice the cost. */
export function lookExactlyAt(path: string): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** Joins device, inode, size and both times: an edit in place, a rename and a copy over the file each change some part. */
export function fileIdentity({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`;
}
