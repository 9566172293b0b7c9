/** Combines the records of TOUCHED frames (schemas/world-frames.schema.json) to the state at the command's start. */
import { TOUCHED_HEADER_SIZE } from "../../schemas/generated/frames.ts";
import { type Move, originOf } from "./moves.ts";
import type { TimeSlices } from "./time-slices.ts";

/** Operations on a name, as bits. `removed`: a folder, by a call that may have failed. */
export const HOW = { name: 1, write: 2, mode: 4, moved: 8, removed: 16 } as const;

/** Values of `before` in a record. */
const ABSENT = 0;
const TOLD = 2;
const MOVED = 3;

/** Earlier state of a name. */
export type Before = {
  readonly mode: number;
  readonly size: bigint;
  readonly inode: bigint;
  readonly mtime: bigint;
  readonly ctime: bigint;
};

/** The combined records of one command. Paths are relative to one folder, one letter per byte. */
export type Touched = {
  /** By path, bits of {@link HOW}. */
  readonly how: Map<string, number>;
  /** By path, the state at the command's start; undefined: missing. A path without an entry is unknown. */
  readonly before: Map<string, Before | undefined>;
  /** Paths occupied by moved files: without an entry in `before`, the path was free at the command's start. */
  readonly taken: Set<string>;
  /** Moved folders, in order. */
  readonly moves: Move[];
};

/** Separate, because a rename between the two fails (EXDEV): each is a mount of its own. */
export type AllTouched = {
  /** Relative to the project. */
  readonly project: Touched;
  /** Relative to `/`: places outside the project, opened by the policy. */
  readonly outside: Touched;
};

/** Throws `RangeError` on a record that exceeds its frame. */
export async function readTouched(payloads: readonly Buffer[], turns: TimeSlices): Promise<AllTouched> {
  const all: AllTouched = { project: none(), outside: none() };
  for (const payload of payloads) {
    await turns.next();
    readPayload(payload, all);
  }
  return all;
}

function none(): Touched {
  return { how: new Map(), before: new Map(), taken: new Set(), moves: [] };
}

function readPayload(payload: Buffer, all: AllTouched): void {
  for (let at = 0; at < payload.length; ) {
    if (at + TOUCHED_HEADER_SIZE > payload.length) throw new RangeError("A record of TOUCHED is cut");
    const end = at + TOUCHED_HEADER_SIZE + payload.readUInt16LE(at);
    if (end > payload.length) throw new RangeError("A path of TOUCHED leaves its frame");
    const path = payload.toString("latin1", at + TOUCHED_HEADER_SIZE, end);
    if (path.startsWith("/")) readRecord(payload, at, path.slice(1), all.outside);
    else readRecord(payload, at, path, all.project);
    at = end;
  }
}

function readRecord(payload: Buffer, at: number, path: string, all: Touched): void {
  const { how, before, moves } = all;
  const [bits, kind] = [payload.readUInt8(at + 2), payload.readUInt8(at + 3)];
  if (kind === MOVED) {
    const [from = "", to = ""] = path.split("\0");
    moves.push({ from, to: to.replace(/^\//, ""), exchanged: bits === 1 });
    return;
  }
  how.set(path, (how.get(path) ?? 0) | bits);
  if (kind === TOLD) return;
  const origin = originOf(path, moves);
  if (origin !== path) all.taken.add(path);
  if (origin === undefined || before.has(origin)) return;
  before.set(origin, kind === ABSENT ? undefined : beforeAt(payload, at));
}

function beforeAt(payload: Buffer, at: number): Before {
  return {
    mode: payload.readUInt32LE(at + 4),
    size: payload.readBigUInt64LE(at + 8),
    inode: payload.readBigUInt64LE(at + 16),
    mtime: payload.readBigInt64LE(at + 24),
    ctime: payload.readBigInt64LE(at + 32),
  };
}
