/**
 * Removes and moves names on the host that a world's seal protects from its commands, if the judge confirms that a command made
 * them (see world/native/seals/removals.h). Only a rename to a free name, or the removal of one name: a folder must be empty.
 */
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  renameSync,
  rmdirSync,
  unlinkSync,
} from "node:fs";
import { constants as system } from "node:os";
import { basename, dirname } from "node:path";
import { FRAME_REPLACE_PATIENCE_MS, TAG } from "../../schemas/generated/frames.ts";
import type { ExecRequest, RemovalJudge } from "../model/world.ts";
import { isWithin } from "../plan/scopes.ts";
import { decodeFields, decodeNumber, type Field } from "./frame-codec.ts";

/** From `include/uapi/asm-generic/fcntl.h`; missing in Node. */
const O_PATH = 0o10000000;

/** Acts in REMOVING (world/native/seals/removals.c). */
const REMOVES_FILE = 1;
const REMOVES_FOLDER = 2;
const MOVES = 3;
const REMOVES_PIN = 4;

/** A name on the host; `device` and `inode` identify its folder. */
type Name = { readonly path: string; readonly device: bigint; readonly inode: bigint };

/** The content of a REMOVING frame. `target` is used only by a move. */
type Asked = { readonly act: number; readonly from: Name; readonly target: Name };

type Side = Pick<ExecRequest, "onViolation"> & {
  /** Paths that the plan keeps from being written or seen: no folder above them is moved, because a world made later goes by path. */
  readonly immovable: readonly string[];
  /** Whether no process of the command is left. */
  readonly isOver: () => boolean;
};

/** Returns the fields of a REPLACED frame; reports the judge's refusal as a violation. Never rejects. */
export async function answerRemoval(
  payload: Buffer,
  judge: RemovalJudge | undefined,
  { onViolation, immovable, isOver }: Side,
): Promise<Field[]> {
  const since = performance.now();
  const fields = new Map(decodeFields(payload));
  const number = (tag: number): number => decodeNumber(fields.get(tag) ?? Buffer.alloc(8));
  const nameOf = (path: number, device: number, inode: number): Name => ({
    path: fields.get(path)?.toString("utf8") ?? "",
    device: fields.get(device)?.readBigUInt64LE() ?? 0n,
    inode: fields.get(inode)?.readBigUInt64LE() ?? 0n,
  });
  // Copy: the frame's memory is reused while the judge decides.
  const token = Buffer.from(fields.get(TAG.TOKEN) ?? []);
  const refused = number(TAG.ERRNO);
  const from = nameOf(TAG.PATH, TAG.DEVICE, TAG.INODE);
  const target = nameOf(TAG.TARGET, TAG.TARGET_DEVICE, TAG.TARGET_INODE);
  const answer = (errno: number): Field[] => [
    [TAG.TOKEN, token],
    [TAG.ERRNO, errno],
  ];
  try {
    // Init may have answered the call already, or the command has ended: a move must not happen then.
    const isLate = (): boolean => isOver() || performance.now() - since > FRAME_REPLACE_PATIENCE_MS / 2;
    const stays = number(TAG.ACT) === MOVES && immovable.some((path) => isWithin(path, from.path));
    if (!stays && (await carryOut({ act: number(TAG.ACT), from, target }, judge, isLate))) return answer(0);
  } catch (error) {
    return answer(errnoOf(error));
  }
  const message = `'${from.path}' cannot be removed or moved in this world: it is or contains a person's sealed repository, or what no command may change`;
  onViolation({ kind: "write", subject: from.path, message });
  return answer(refused);
}

/** Returns false when the judge refuses. Throws the kernel's errors, and EBUSY when too late. */
async function carryOut(
  { act, from, target }: Asked,
  judge: RemovalJudge | undefined,
  isLate: () => boolean,
): Promise<boolean> {
  switch (act) {
    case REMOVES_PIN:
      // Needs no judge: rmdir fails unless the folder is empty.
      within(from, rmdirSync);
      return true;
    case REMOVES_FILE:
    case REMOVES_FOLDER:
      if (!(await mayRemove(from.path, judge, isLate))) return false;
      within(from, act === REMOVES_FILE ? unlinkSync : rmdirSync);
      return true;
    case MOVES:
      if ((await judge?.mayMove(from.path)) !== true) return false;
      if (isLate()) throw Object.assign(new Error("It took too long"), { errno: -system.errno.EBUSY });
      within(from, (source) => within(target, (place) => moveToFree(source, place)));
      return true;
    default:
      throw new RangeError(`REMOVING with the act ${act}`);
  }
}

/** Waits only for a judge on another machine: a removal that init no longer waits for must not happen. */
async function mayRemove(
  path: string,
  judge: RemovalJudge | undefined,
  isLate: () => boolean,
): Promise<boolean> {
  const answer = judge?.mayRemove(path);
  if (!(answer instanceof Promise)) return answer === true;
  const may = await answer;
  if (may && isLate()) throw Object.assign(new Error("It took too long"), { errno: -system.errno.EBUSY });
  return may;
}

/** Fails with EEXIST, because Node's rename would replace an empty folder. A race is harmless: only the mover's own new name is lost. */
function moveToFree(source: string, place: string): void {
  if (lstatSync(place, { throwIfNoEntry: false }) !== undefined)
    throw Object.assign(new Error("It is taken"), { errno: -system.errno.EEXIST });
  renameSync(source, place);
}

/** Acts on a name in the folder identified by the frame, wherever the folder's path leads by now. */
function within(name: Name, act: (path: string) => void): void {
  const folder = openSync(dirname(name.path), O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    const { dev, ino } = fstatSync(folder, { bigint: true });
    if (dev !== name.device || ino !== name.inode)
      throw Object.assign(new Error("Its folder is another one"), { errno: -system.errno.EBUSY });
    act(`/proc/self/fd/${folder}/${basename(name.path)}`);
  } finally {
    closeSync(folder);
  }
}

function errnoOf(error: unknown): number {
  const { errno } = error as NodeJS.ErrnoException;
  return errno === undefined ? system.errno.EBUSY : Math.abs(errno);
}
