/** All that a folder holds, so that two of them can be compared. */
import { createHash } from "node:crypto";
import {
  type BigIntStats,
  closeSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
} from "node:fs";
import type { XattrsOf } from "./xattrs.ts";

/** By path (names as latin1, so that bytes that are no UTF-8 stay apart): what is there, in one line. */
export type Tree = ReadonlyMap<string, string>;

export type TreeOptions = {
  /** Nanoseconds: what was changed later counts as changed "now", since no two runs happen at the same time. */
  readonly since: bigint;
  readonly xattrsOf: XattrsOf;
};

const SECOND = 1_000_000_000n;
const CHUNK = 1 << 20;

/** Every path below some folders, each named in the result by its key. A folder that is not there has no line. */
export function treeOf(folders: Readonly<Record<string, string>>, options: TreeOptions): Tree {
  const found = Object.entries(folders).flatMap(([name, folder]) => [...below(bytes(folder), name)]);
  const xattrs = options.xattrsOf(found.map(({ place }) => place));
  const names = new Map<string, string>();
  const lines = found.map(({ name, place, stat }, index) => {
    const own = [describe(place, stat, options), ...(xattrs[index] ?? []), ...secondName(names, name, stat)];
    return [name, own.join(" ")] as const;
  });
  return new Map(lines);
}

/** The latest time that something in these folders was changed, in nanoseconds. */
export function newestIn(folders: readonly string[]): bigint {
  return folders
    .flatMap((folder) => [...below(bytes(folder), "")])
    .reduce((newest, { stat }) => (stat.mtimeNs > newest ? stat.mtimeNs : newest), 0n);
}

type Found = { readonly name: string; readonly place: Buffer; readonly stat: BigIntStats };

function* below(place: Buffer, name: string): Generator<Found> {
  const stat = lstatSync(place, { bigint: true, throwIfNoEntry: false });
  if (stat === undefined) return;
  yield { name, place, stat };
  if (!stat.isDirectory()) return;
  const entries = readdirSync(place, { encoding: "buffer" }).sort((one, other) => Buffer.compare(one, other));
  for (const entry of entries)
    yield* below(Buffer.concat([place, bytes("/"), entry]), `${name}/${entry.toString("latin1")}`);
}

function describe(place: Buffer, stat: BigIntStats, { since }: TreeOptions): string {
  const mode = (Number(stat.mode) & 0o7777).toString(8);
  const time = isNow(stat, since) ? "now" : stat.mtimeNs.toString();
  return `${kindOf(place, stat)} mode=${mode} owner=${stat.uid}:${stat.gid} time=${time}`;
}

/** Tools that keep whole seconds (tar, wget, dpkg) set "now" to up to a second ago. */
function isNow(stat: BigIntStats, since: bigint): boolean {
  const latest = stat.mtimeNs % SECOND === 0n ? stat.mtimeNs + SECOND : stat.mtimeNs;
  return latest > since && !isAhead(stat);
}

/** A time that lies more than a minute in the future was set, and by no clock. */
function isAhead({ mtimeNs }: BigIntStats): boolean {
  return mtimeNs > BigInt(Date.now() + 60_000) * 1_000_000n;
}

function kindOf(place: Buffer, stat: BigIntStats): string {
  if (stat.isDirectory()) return "folder";
  if (stat.isSymbolicLink()) return `link to ${JSON.stringify(readlinkSync(place, "latin1"))}`;
  if (stat.isFIFO()) return "fifo";
  if (stat.isSocket()) return "socket";
  if (stat.isFile()) return `file ${stat.size} bytes${holes(stat)} sha256=${digest(place)}`;
  return `device ${stat.rdev}`;
}

/** A file that takes less than half of its size on the disk has holes (512 bytes a block, stat(2)). */
function holes({ size, blocks }: BigIntStats): string {
  return size > 65_536n && blocks * 512n < size / 2n ? " with holes" : "";
}

function digest(place: Buffer): string {
  const hash = createHash("sha256");
  const chunk = Buffer.alloc(CHUNK);
  const file = opened(place);
  if (file === undefined) return "closed to its owner";
  try {
    for (let length = readSync(file, chunk); length > 0; length = readSync(file, chunk))
      hash.update(chunk.subarray(0, length));
  } finally {
    closeSync(file);
  }
  return hash.digest("hex").slice(0, 16);
}

/** Root reads all; a suite that an ordinary user runs cannot read a file of mode 000, bare or not. */
function opened(place: Buffer): number | undefined {
  try {
    return openSync(place, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EACCES") return undefined;
    throw error;
  }
}

/** A file with several names is told at each but the first. */
function secondName(names: Map<string, string>, name: string, stat: BigIntStats): string[] {
  if (!stat.isFile() || stat.nlink < 2n) return [];
  const inode = `${stat.dev}:${stat.ino}`;
  const first = names.get(inode);
  names.set(inode, first ?? name);
  return [`names=${stat.nlink}`, ...(first === undefined ? [] : [`same-as=${JSON.stringify(first)}`])];
}

function bytes(name: string): Buffer {
  return Buffer.from(name, "latin1");
}
