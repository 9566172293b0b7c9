import { endianness } from "node:os";
import { TELEMETRY_HEADER_SIZE } from "../../schemas/generated/frames.ts";
import {
  TELEMETRY_KINDS,
  type TelemetryCounts,
  type TelemetryEvent,
  type TelemetryKind,
} from "../model/telemetry.ts";

/** The flag byte of a record (schemas/world-frames.schema.json, TELEMETRY). */
const CUT = 1;

/** Address families (address_families(7)). */
const AF_UNIX = 1;
const AF_INET = 2;
const AF_INET6 = 10;

/** The bytes of an internet address that a kernel reads: sockaddr_in, and sockaddr_in6 without flow and scope. */
const INET_SIZE = 8;
const INET6_SIZE = 24;

/**
 * Decodes the records of a TELEMETRY frame. Init guarantees lengths and kinds: throws on a record that exceeds its frame or has
 * an unknown kind. The texts are untrusted.
 */
export function decodeTelemetry(payload: Buffer): readonly TelemetryEvent[] {
  const events: TelemetryEvent[] = [];
  for (let at = 0; at < payload.length; ) {
    const text = at + TELEMETRY_HEADER_SIZE;
    const end = text > payload.length ? Number.POSITIVE_INFINITY : text + payload.readUInt16LE(at);
    if (end > payload.length) throw new RangeError("A record of TELEMETRY leaves its frame");
    const kind = TELEMETRY_KINDS[payload.readUInt8(at + 2) - 1];
    if (kind === undefined) throw new RangeError("A record of TELEMETRY is of no known kind");
    const cut = (payload.readUInt8(at + 3) & CUT) !== 0;
    events.push({ kind, text: textOf(kind, payload.subarray(text, end)), cut });
    at = end;
  }
  return events;
}

/** Decodes HEARD; undefined: there was no listener. A missing number is 0. */
export function decodeHeard(texts: readonly string[]): TelemetryCounts | undefined {
  if (texts.length === 0) return undefined;
  const numbers = new Map(texts.map((text) => [text.split("=")[0], numberOf(text.split("=")[1])]));
  const of = (name: string): number => numbers.get(name) ?? 0;
  const kinds = TELEMETRY_KINDS.map((kind) => [kind, of(kind)] as const);
  return {
    kinds: Object.fromEntries(kinds) as Record<TelemetryKind, number>,
    untold: of("untold"),
    missed: of("missed"),
  };
}

/** Caps at the largest safe integer: programs can report any sum. */
function numberOf(digits: string | undefined): number {
  return Math.min(Number.MAX_SAFE_INTEGER, Number(digits ?? 0));
}

function textOf(kind: TelemetryKind, bytes: Buffer): string {
  return kind === "connect" ? addressText(bytes) : bytes.toString("utf8");
}

/** Formats a sockaddr for people. A malformed or unknown address becomes a phrase with its family. */
export function addressText(bytes: Buffer): string {
  if (bytes.length < 2) return "no address";
  // Native byte order: the program runs on the same processor.
  const family = endianness() === "LE" ? bytes.readUInt16LE(0) : bytes.readUInt16BE(0);
  if (family === AF_UNIX) return unixText(bytes.subarray(2));
  if (family === AF_INET && bytes.length >= INET_SIZE)
    return `${[...bytes.subarray(4, INET_SIZE)].join(".")}:${bytes.readUInt16BE(2)}`;
  if (family === AF_INET6 && bytes.length >= INET6_SIZE)
    return `[${groupsText(bytes.subarray(8, INET6_SIZE))}]:${bytes.readUInt16BE(2)}`;
  return `an address of family ${family}`;
}

/** A path ends at its NUL; an abstract name begins with NUL and extends to the end of the address (unix(7)). */
function unixText(name: Buffer): string {
  if (name.length === 0) return "unix:";
  if (name[0] === 0) return `unix:@${name.toString("utf8", 1)}`;
  const end = name.indexOf(0);
  return `unix:${name.toString("utf8", 0, end < 0 ? name.length : end)}`;
}

function groupsText(bytes: Buffer): string {
  const groups = Array.from({ length: 8 }, (_unused, at) => bytes.readUInt16BE(2 * at).toString(16));
  return groups.join(":").replace(/(?:^|:)0(?::0)+(?::|$)/, "::");
}
