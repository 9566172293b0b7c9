import { PROGRAM_HEADER_SIZE } from "../../schemas/generated/frames.ts";
import type { ProgramEvent } from "../model/programs.ts";
import { wordsOf } from "./program-gates.ts";

/** Kinds and flags of a record (schemas/world-frames.schema.json, PROGRAMS). */
const STARTED = 1;
const REFUSED = 2;
const CUT = 1;
const REPLACED = 2;
const STATUS_KNOWN = 4;

/** Decodes the records of a PROGRAMS frame. Throws on a record that exceeds its frame. */
export function decodePrograms(payload: Buffer): readonly ProgramEvent[] {
  const events: ProgramEvent[] = [];
  for (let at = 0; at < payload.length; ) {
    const length = at + PROGRAM_HEADER_SIZE > payload.length ? 0 : payload.readUInt32LE(at);
    if (length < PROGRAM_HEADER_SIZE || at + length > payload.length)
      throw new RangeError("A record of PROGRAMS leaves its frame");
    events.push(decodeOne(payload.subarray(at, at + length)));
    at += length;
  }
  return events;
}

function decodeOne(record: Buffer): ProgramEvent {
  const [kind, flags] = [record.readUInt8(4), record.readUInt8(5)];
  const words = PROGRAM_HEADER_SIZE + record.readUInt16LE(6);
  const [number, parent, pid] = [record.readUInt32LE(8), record.readUInt32LE(12), record.readUInt32LE(16)];
  const at = record.readBigInt64LE(24);
  const path = record.toString("utf8", PROGRAM_HEADER_SIZE, words);
  const asked = { parent, pid, path, argv: wordsOf(record.subarray(words)), cut: (flags & CUT) !== 0, at };
  if (kind === STARTED) return { kind: "started", number, ...asked };
  if (kind === REFUSED) return { kind: "refused", ...asked };
  const replaced = (flags & REPLACED) !== 0;
  return { kind: "ended", number, at, replaced, ...endOf(flags, record.readUInt32LE(20)) };
}

/** Decodes a wait(2) status: signal in the lowest seven bits, exit code in the next eight. */
function endOf(
  flags: number,
  status: number,
): { readonly code: number | null; readonly signal: number | null } {
  if ((flags & STATUS_KNOWN) === 0) return { code: null, signal: null };
  const signal = status & 0x7f;
  return signal === 0 ? { code: (status >> 8) & 0xff, signal: null } : { code: null, signal };
}
