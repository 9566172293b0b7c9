/**
 * How much a world may keep in the file systems of its own. They lie in memory, so their sum must be bounded, and the
 * number of their files too: an empty file takes a kilobyte of the kernel that `size` does not count.
 */

/** Of `limits.disk`, or of the default; together no more than all of it. */
const SHARES: Readonly<Record<string, number>> = {
  "/tmp": 1 / 2,
  "/dev/shm": 1 / 4,
  "/var/tmp": 1 / 8,
  "/run": 1 / 8,
};

/** Without a word from the policy: a quarter of the machine's memory, in percent as tmpfs(5) takes it. */
const DEFAULT_PERCENT = 25;

/** One file for this many bytes, as ext4 counts, within bounds that any build fits into. */
const BYTES_PER_FILE = 16_384;
const LEAST_FILES = 1024;
const MOST_FILES = 262_144;

/** The tmpfs options that bound a private folder; `disk` in bytes. */
export function roomOf(folder: string, disk: number | undefined): string {
  const share = SHARES[folder];
  if (share === undefined) throw new Error(`No share of a world's disk is set aside for '${folder}'`);
  if (disk === undefined) return `size=${Math.floor(DEFAULT_PERCENT * share)}%,nr_inodes=${MOST_FILES}`;
  const bytes = Math.floor(disk * share);
  const files = Math.min(MOST_FILES, Math.max(LEAST_FILES, Math.floor(bytes / BYTES_PER_FILE)));
  // A size of 0 is no bound for the kernel: a page is the least.
  return `size=${Math.max(4096, bytes)},nr_inodes=${files}`;
}
