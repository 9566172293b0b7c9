/**
 * The bytes between broker and `substrate-init`: a 12-byte little-endian header (payload length u32, type u8,
 * three zero bytes, command id u32) and a payload. Structured payloads are fields: tag u16, zero u16, length u32, bytes.
 * Numbers and names come from `schemas/world-frames.schema.json`.
 */
import { FRAME_HEADER_SIZE, FRAME_MAX_PAYLOAD } from "../../schemas/generated/frames.ts";

const FIELD_HEADER_SIZE = 8;

export type FieldValue = string | number | Uint8Array;
export type Field = readonly [tag: number, value: FieldValue];

/** Thrown for a frame above the maximum length, before any byte is sent. */
export class FrameTooLarge extends Error {
  override readonly name = "FrameTooLarge";
}

/** Encodes a frame with fields as payload. Throws {@link FrameTooLarge}. */
export function encodeFields(type: number, id: number, fields: readonly Field[]): Buffer {
  let size = 0;
  for (const [, value] of fields) size += FIELD_HEADER_SIZE + valueSize(value);
  const frame = startFrame(type, id, size);
  let at = FRAME_HEADER_SIZE;
  for (const [tag, value] of fields) at = writeField(frame, at, tag, value);
  return frame;
}

/** Encodes a frame with a single u64 as payload. */
export function encodeNumber(type: number, id: number, value: number): Buffer {
  const frame = startFrame(type, id, 8);
  frame.writeBigUInt64LE(BigInt(value), FRAME_HEADER_SIZE);
  return frame;
}

/** Encodes a frame with bytes as payload. */
export function encodeBytes(type: number, id: number, bytes: Uint8Array): Buffer {
  const frame = startFrame(type, id, bytes.length);
  frame.set(bytes, FRAME_HEADER_SIZE);
  return frame;
}

/** Encodes a frame without payload. */
export function encodeEmpty(type: number, id: number): Buffer {
  return startFrame(type, id, 0);
}

/** Decodes the fields of a payload. Throws when a length exceeds the payload. */
export function decodeFields(payload: Buffer): readonly (readonly [tag: number, bytes: Buffer])[] {
  const fields: (readonly [number, Buffer])[] = [];
  let at = 0;
  while (at < payload.length) {
    if (at + FIELD_HEADER_SIZE > payload.length) throw new RangeError("Field header leaves its frame");
    const tag = payload.readUInt16LE(at);
    const end = at + FIELD_HEADER_SIZE + payload.readUInt32LE(at + 4);
    if (end > payload.length) throw new RangeError(`Field ${tag} leaves its frame`);
    fields.push([tag, payload.subarray(at + FIELD_HEADER_SIZE, end)]);
    at = end;
  }
  return fields;
}

/** Decodes a field or payload of eight bytes as a number. */
export function decodeNumber(bytes: Buffer): number {
  return Number(bytes.readBigUInt64LE(0));
}

function startFrame(type: number, id: number, size: number): Buffer {
  if (size > FRAME_MAX_PAYLOAD)
    throw new FrameTooLarge(`A frame of ${size} bytes is longer than ${FRAME_MAX_PAYLOAD}`);
  const frame = Buffer.allocUnsafe(FRAME_HEADER_SIZE + size);
  frame.writeUInt32LE(size, 0);
  frame.writeUInt32LE(type, 4);
  frame.writeUInt32LE(id, 8);
  return frame;
}

function writeField(frame: Buffer, at: number, tag: number, value: FieldValue): number {
  const start = at + FIELD_HEADER_SIZE;
  const size = writeValue(frame, start, value);
  frame.writeUInt32LE(tag, at);
  frame.writeUInt32LE(size, at + 4);
  return start + size;
}

function writeValue(frame: Buffer, at: number, value: FieldValue): number {
  if (typeof value === "string") return frame.write(value, at, "utf8");
  if (typeof value === "number") return frame.writeBigUInt64LE(BigInt(value), at) - at;
  frame.set(value, at);
  return value.length;
}

function valueSize(value: FieldValue): number {
  if (typeof value === "string") return Buffer.byteLength(value, "utf8");
  return typeof value === "number" ? 8 : value.length;
}
