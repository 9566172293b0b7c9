/** What stands under a name that was touched, as far as it was looked at. */
import { type BigIntStats, constants, type Stats } from "node:fs";

export type Now = {
  /** `st_mode`. */
  readonly mode: number;
  /** Bytes. */
  readonly size: number;
  /** Which file was looked at; undefined when another process looked. */
  readonly stats: Stats | BigIntStats | undefined;
  /** What it holds: a digest, "" of what has none, null when that cannot be read; undefined when nobody read it yet. */
  readonly content: string | null | undefined;
};

export function nowOf(stats: Stats | BigIntStats): Now {
  const mode = Number(stats.mode);
  return { mode, size: Number(stats.size), stats, content: hasContent(mode) ? undefined : "" };
}

export function isFile(mode: number): boolean {
  return (mode & constants.S_IFMT) === constants.S_IFREG;
}

export function isLink(mode: number): boolean {
  return (mode & constants.S_IFMT) === constants.S_IFLNK;
}

export function hasContent(mode: number): boolean {
  return isFile(mode) || isLink(mode);
}
