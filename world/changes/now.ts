/** The present state of a touched name. */
import { type BigIntStats, constants, type Stats } from "node:fs";

export type Now = {
  /** `st_mode`. */
  readonly mode: number;
  /** Bytes. */
  readonly size: number;
  /** Identity of the compared file. */
  readonly stats: Stats | BigIntStats;
};

export function nowOf(stats: Stats | BigIntStats): Now {
  return { mode: Number(stats.mode), size: Number(stats.size), stats };
}

export function isFile(mode: number): boolean {
  return (mode & constants.S_IFMT) === constants.S_IFREG;
}

export function isLink(mode: number): boolean {
  return (mode & constants.S_IFMT) === constants.S_IFLNK;
}
