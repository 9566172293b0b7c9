/**
 * Removes and moves on the host what a command may not by itself, since a seal of its world keeps it, when whoever knows says that a
 * command made it (world/native/seals/removals.h says how). Only a rename that finds nothing in its way, or a removal of one name: a folder
 * is removed empty.
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
import { decodeFields, decodeNumber, type Field } from "./frame-codec.ts";

/** From `include/uapi/asm-generic/fcntl.h`: Node has no name for it. */
const O_PATH = 0o10000000;

/** In REMOVING (world/native/seals/removals.c). */
const REMOVES_FILE = 1;
const REMOVES_FOLDER = 2;
const MOVES = 3;
const REMOVES_PIN = 4;

/** A name on the host; `device` and `inode` are those of its folder. */
type Name = { readonly path: string; readonly device: bigint; readonly inode: bigint };

/** What a REMOVING asks for. `target` counts when it moves. */
type Asked = { readonly act: number; readonly from: Name; readonly target: Name };

type Side = Pick<ExecRequest, "onViolation"> & {
  /** Nothing of the command is left. */
  readonly isOver: () => boolean;
};

/** The fields of a REPLACED. Tells what the judge refuses. Never rejects. */
export async function answerRemoval(
  payload: Buffer,
  judge: RemovalJudge | undefined,
  { onViolation, isOver }: Side,
): Promise<Field[]> {
  const since = performance.now();
  const fields = new Map(decodeFields(payload));
  const number = (tag: number): number => decodeNumber(fields.get(tag) ?? Buffer.alloc(8));
  const nameOf = (path: number, device: number, inode: number): Name => ({
    path: fields.get(path)?.toString("utf8") ?? "",
    device: fields.get(device)?.readBigUInt64LE() ?? 0n,
    inode: fields.get(inode)?.readBigUInt64LE() ?? 0n,
  });
  // The frame's memory is used again while the judge looks.
  const token = Buffer.from(fields.get(TAG.TOKEN) ?? []);
  const refused = number(TAG.ERRNO);
  const from = nameOf(TAG.PATH, TAG.DEVICE, TAG.INODE);
  const target = nameOf(TAG.TARGET, TAG.TARGET_DEVICE, TAG.TARGET_INODE);
  const answer = (errno: number): Field[] => [
    [TAG.TOKEN, token],
    [TAG.ERRNO, errno],
  ];
  try {
    // Nobody waits for it any more once the call has been answered, or its command has ended: then it must not happen.
    const isLate = (): boolean => isOver() || performance.now() - since > FRAME_REPLACE_PATIENCE_MS / 2;
    if (await carryOut({ act: number(TAG.ACT), from, target }, judge, isLate)) return answer(0);
  } catch (error) {
    return answer(errnoOf(error));
  }
  const message = `'${from.path}' cannot be taken away in this world: a person's repository is sealed`;
  onViolation({ kind: "write", subject: from.path, message });
  return answer(refused);
}

/** False: the judge refuses. Throws what the kernel says, and EBUSY when it is too late. */
async function carryOut(
  { act, from, target }: Asked,
  judge: RemovalJudge | undefined,
  isLate: () => boolean,
): Promise<boolean> {
  switch (act) {
    case REMOVES_PIN:
      // A folder with anything in it stays, whoever asks.
      within(from, rmdirSync);
      return true;
    case REMOVES_FILE:
    case REMOVES_FOLDER:
      if (judge?.mayRemove(from.path) !== true) return false;
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

/** Node's rename replaces an empty folder: it is the mover's, as any other name that it makes meanwhile. */
function moveToFree(source: string, place: string): void {
  if (lstatSync(place, { throwIfNoEntry: false }) !== undefined)
    throw Object.assign(new Error("It is taken"), { errno: -system.errno.EEXIST });
  renameSync(source, place);
}

/** Acts on a name in the folder that was asked about, whatever its path leads to by now. */
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
