/** DNS messages as RFC 1035 has them: as much of them as a server of tests needs. */
import { isIPv4 } from "node:net";

/** The header (RFC 1035, 4.1.1). */
const HEADER_BYTES = 12;
const LABEL_MOST = 63;
/** An answer, authoritative, recursion wanted and available. */
const AUTHORITATIVE = 0x8000 | 0x0400 | 0x0100 | 0x0080;
/** It was cut to fit (TC). */
const CUT = 0x0200;

const TYPES: Readonly<Record<number, string>> = {
  1: "A",
  2: "NS",
  5: "CNAME",
  15: "MX",
  16: "TXT",
  28: "AAAA",
  33: "SRV",
  65: "HTTPS",
  255: "ANY",
};

export const RCODES = { NOERROR: 0, SERVFAIL: 2, NXDOMAIN: 3, REFUSED: 5 } as const;

export type Question = {
  readonly id: number;
  /** Its bytes, from the name to the class. */
  readonly bytes: Buffer;
  readonly name: string;
  readonly type: string;
};

export type DnsRecord = { readonly owner: string; readonly ttl: number } & (
  | { readonly address: string }
  | { readonly alias: string }
);

/** The one question of a message. Throws when there is not exactly one, or it is cut. */
export function readQuestion(message: Buffer): Question {
  if (message.length < HEADER_BYTES || message.readUInt16BE(4) !== 1)
    throw new Error(`Expected a message with one question, received ${message.length} bytes`);
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = message.readUInt8(at); length > 0; length = message.readUInt8(at)) {
    if (length > LABEL_MOST) throw new Error(`Expected a label, received the length ${length}`);
    labels.push(escaped(message.subarray(at + 1, at + 1 + length)));
    at += 1 + length;
  }
  const type = message.readUInt16BE(at + 1);
  return {
    id: message.readUInt16BE(0),
    bytes: message.subarray(HEADER_BYTES, at + 5),
    name: labels.join("."),
    type: TYPES[type] ?? `TYPE${type}`,
  };
}

/** An answer without records that asks its reader to come again over TCP. */
export function writeCutAnswer(question: Question): Buffer {
  return Buffer.concat([header(question.id, AUTHORITATIVE | CUT, 0), question.bytes]);
}

/** The answer to a question. */
export function writeAnswer(question: Question, rcode: number, records: readonly DnsRecord[]): Buffer {
  return Buffer.concat([
    header(question.id, AUTHORITATIVE | rcode, records.length),
    question.bytes,
    ...records.map(wireRecord),
  ]);
}

function header(id: number, flags: number, answers: number): Buffer {
  const bytes = Buffer.alloc(HEADER_BYTES);
  for (const [index, value] of [id, flags, 1, answers].entries()) bytes.writeUInt16BE(value, index * 2);
  return bytes;
}

function wireRecord(record: DnsRecord): Buffer {
  const data = "alias" in record ? wireName(record.alias) : wireAddress(record.address);
  const type = "alias" in record ? 5 : data.length === 4 ? 1 : 28;
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(type, 0);
  fixed.writeUInt16BE(1, 2);
  fixed.writeUInt32BE(record.ttl, 4);
  fixed.writeUInt16BE(data.length, 8);
  return Buffer.concat([wireName(record.owner), fixed, data]);
}

function wireName(name: string): Buffer {
  const labels = name.split(".").map((label) => {
    const bytes = Buffer.from(label, "latin1");
    return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  });
  return Buffer.concat([...labels, Buffer.from([0])]);
}

/** `::ffff:1.2.3.4` too: what a name points at may be spelled so. */
function wireAddress(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split(".").map(Number));
  const [head = "", tail] = dottedAsGroups(address).split("::");
  const [left, right] = [head, tail ?? ""].map((half) => half.split(":").filter(Boolean));
  if (left === undefined || right === undefined) throw new Error(`Cannot read the address '${address}'`);
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => "0");
  const bytes = Buffer.alloc(16);
  for (const [index, group] of [...left, ...zeros, ...right].entries())
    bytes.writeUInt16BE(Number.parseInt(group, 16), index * 2);
  return bytes;
}

function dottedAsGroups(address: string): string {
  const dotted = /\d+\.\d+\.\d+\.\d+$/.exec(address)?.[0];
  if (dotted === undefined) return address;
  return address.slice(0, -dotted.length) + groups(Buffer.from(dotted.split(".").map(Number))).join(":");
}

function groups(bytes: Buffer): string[] {
  return Array.from({ length: bytes.length / 2 }, (_, index) => bytes.readUInt16BE(index * 2).toString(16));
}

function escaped(label: Buffer): string {
  return [...label]
    .map((byte) =>
      byte > 32 && byte < 127 && byte !== 46 && byte !== 92
        ? String.fromCharCode(byte)
        : `\\${String(byte).padStart(3, "0")}`,
    )
    .join("");
}
