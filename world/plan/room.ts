/**
 * Bounds the world's own file systems. They lie in memory, so their sum must be bounded, and the number of files as well: an
 * empty file takes a kilobyte of kernel memory not counted by `size`.
 */

/** Shares of `limits.disk`, or of the default; the sum is 1. */
const SHARES: Readonly<Record<string, number>> = {
  "/tmp": 1 / 2,
  "/dev/shm": 1 / 4,
  "/var/tmp": 1 / 8,
  "/run": 1 / 8,
};

/** Default: a quarter of the machine's memory, in percent for tmpfs(5). */
const DEFAULT_PERCENT = 25;

/** Bytes per file as in ext4, within bounds that suffice for any build. */
const BYTES_PER_FILE = 16_384;
const LEAST_FILES = 1024;
const MOST_FILES = 262_144;

/** Returns the tmpfs options that bound a private folder; `disk` in bytes. */
export function roomOf(folder: string, disk: number | undefined): string {
  const share = SHARES[folder];
  if (share === undefined) throw new Error(`No share of a world's disk is set aside for '${folder}'`);
  if (disk === undefined) return `size=${Math.floor(DEFAULT_PERCENT * share)}%,nr_inodes=${MOST_FILES}`;
  const bytes = Math.floor(disk * share);
  const files = Math.min(MOST_FILES, Math.max(LEAST_FILES, Math.floor(bytes / BYTES_PER_FILE)));
  // The kernel takes a size of 0 for unlimited, so use at least one page.
  return `size=${Math.max(4096, bytes)},nr_inodes=${files}`;
}
