/**
 * One DNS query in, one reply out (RFC 1035 section 4), for a server that answers with at most one address.
 *
 * A DNS library joins labels with dots and decodes them as UTF-8, so the single label `a.example` and two labels become
 * the same name. Here a label is bytes, and the reply echoes the question unchanged.
 */

/** Response codes: RFC 1035 section 4.1.1; BADVERS: RFC 6891 section 9. */
export const CODE = {
  noError: 0,
  formatError: 1,
  serverFailure: 2,
  noSuchName: 3,
  notImplemented: 4,
  refused: 5,
  badVersion: 16,
} as const;

export type Code = (typeof CODE)[keyof typeof CODE];

type Head = { readonly id: number; readonly opcode: number; readonly recursionDesired: boolean };

/** A requestor's EDNS parameters (RFC 6891 section 6.1). */
export type Edns = { readonly version: number; readonly dnssec: boolean };

export type Query = Head & {
  readonly kind: "query";
  /** The question section: name, type and class. */
  readonly question: Buffer;
  /** The labels joined with dots; null when a label holds a byte outside the host name alphabet. */
  readonly name: string | null;
  readonly type: number;
  readonly class: number;
  readonly edns: Edns | undefined;
};

/** A malformed or unsupported message whose header is intact, so a reply can be addressed. */
export type Unusable = Head & { readonly kind: "unusable"; readonly code: Code };

const HEADER = 12;
/** RFC 1035 section 3.1: all labels with their length bytes, including the root label. */
const MAX_NAME = 255;
const MAX_LABEL = 63;
/** OPT and a signature; no other record belongs after a question. */
const MAX_ADDITIONAL = 2;
const TYPE_A = 1;
const TYPE_OPT = 41;
const CLASS_IN = 1;

/**
 * Letters, digits, hyphen, and the underscore of service names. IDNs arrive as `xn--` (RFC 5891 section 4.4). Any other
 * byte could turn into part of another name when names are normalized.
 */
const HOST_LABEL = /^[A-Za-z0-9_-]+$/;

/** Parses a query; undefined for a message without an answerable sender: shorter than a header, or itself a reply. */
export function readQuery(message: Buffer): Query | Unusable | undefined {
  if (message.length < HEADER) return undefined;
  const flags = message.readUInt16BE(2);
  if ((flags & 0x8000) !== 0) return undefined;
  const head = {
    id: message.readUInt16BE(0),
    opcode: (flags >> 11) & 15,
    recursionDesired: (flags & 0x0100) !== 0,
  };
  if (head.opcode !== 0) return { ...head, kind: "unusable", code: CODE.notImplemented };
  const body = readBody(message);
  return body === undefined
    ? { ...head, kind: "unusable", code: CODE.formatError }
    : { ...head, kind: "query", ...body };
}

function readBody(message: Buffer): Omit<Query, keyof Head | "kind"> | undefined {
  const [questions, answers, authorities, additional] = [4, 6, 8, 10].map((at) => message.readUInt16BE(at));
  // RFC 9619: one question. Without other records, the work per message is bounded by the name's length.
  if (questions !== 1 || answers !== 0 || authorities !== 0) return undefined;
  if (additional === undefined || additional > MAX_ADDITIONAL) return undefined;
  const labels = readLabels(message, HEADER);
  if (labels === undefined || labels.end + 4 > message.length) return undefined;
  const end = labels.end + 4;
  const records = readAdditional(message, end, additional);
  if (records === undefined) return undefined;
  return {
    question: message.subarray(HEADER, end),
    name: nameOf(labels.labels),
    type: message.readUInt16BE(labels.end),
    class: message.readUInt16BE(labels.end + 2),
    edns: records.edns,
  };
}

/** Reads an uncompressed name: the first name of a message has nothing to point back to. */
function readLabels(message: Buffer, start: number): { labels: Buffer[]; end: number } | undefined {
  const labels: Buffer[] = [];
  let at = start;
  for (;;) {
    const length = message[at++];
    if (length === undefined || length > MAX_LABEL) return undefined;
    if (at + length > message.length || at + length - start > MAX_NAME) return undefined;
    if (length === 0) return { labels, end: at };
    labels.push(message.subarray(at, at + length));
    at += length;
  }
}

function nameOf(labels: readonly Buffer[]): string | null {
  const texts = labels.map((label) => label.toString("latin1"));
  return texts.every((text) => HOST_LABEL.test(text)) ? texts.join(".") : null;
}

function readAdditional(
  message: Buffer,
  start: number,
  count: number,
): { readonly edns: Edns | undefined } | undefined {
  let at = start;
  let edns: Edns | undefined;
  for (let read = 0; read < count; read++) {
    const owner = readLabels(message, at);
    if (owner === undefined || owner.end + 10 > message.length) return undefined;
    const fixed = message.subarray(owner.end, owner.end + 10);
    if (fixed.readUInt16BE(0) === TYPE_OPT) {
      // RFC 6891 section 6.1.1: at most one OPT record, owned by the root name.
      if (edns !== undefined || owner.labels.length > 0) return undefined;
      edns = { version: fixed.readUInt8(5), dnssec: (fixed.readUInt16BE(6) & 0x8000) !== 0 };
    }
    at = owner.end + 10 + fixed.readUInt16BE(8);
    if (at > message.length) return undefined;
  }
  return at === message.length ? { edns } : undefined;
}

/**
 * Writes a reply with one address or without records. At most 298 bytes (12 header, 259 question, 16 answer, 11 OPT):
 * every client accepts this size (RFC 1035 section 4.2.1), so a reply is never truncated.
 *
 * @param ttl in seconds.
 */
export function writeReply(
  query: Query,
  code: Code,
  answer?: { readonly address: string; readonly ttl: number },
): Buffer {
  const parts = [header(query, code, answer === undefined ? 0 : 1, query.edns), query.question];
  if (answer !== undefined) parts.push(addressRecord(answer.address, answer.ttl));
  if (query.edns !== undefined) parts.push(optRecord(code, query.edns));
  return Buffer.concat(parts);
}

/** Writes the reply to a malformed or unsupported message: the header alone (RFC 1035 section 4.1.1). */
export function writeUnusable({ code, ...head }: Unusable): Buffer {
  const bytes = header(head, code, 0, undefined);
  bytes.writeUInt16BE(0, 4);
  return bytes;
}

function header(
  { id, opcode, recursionDesired }: Head,
  code: Code,
  answers: number,
  edns: Edns | undefined,
): Buffer {
  const bytes = Buffer.alloc(HEADER);
  bytes.writeUInt16BE(id, 0);
  // QR and RA: glibc and Go take a reply without RA and records for a referral, then ask elsewhere or fail.
  bytes.writeUInt16BE(0x8000 | (opcode << 11) | (recursionDesired ? 0x0100 : 0) | 0x0080 | (code & 15), 2);
  bytes.writeUInt16BE(1, 4);
  bytes.writeUInt16BE(answers, 6);
  bytes.writeUInt16BE(edns === undefined ? 0 : 1, 10);
  return bytes;
}

/** The owner is a pointer to the question (RFC 1035 section 4.1.4), so the case of the letters is kept. */
function addressRecord(address: string, ttl: number): Buffer {
  const bytes = Buffer.alloc(16);
  bytes.writeUInt16BE(0xc000 | HEADER, 0);
  bytes.writeUInt16BE(TYPE_A, 2);
  bytes.writeUInt16BE(CLASS_IN, 4);
  bytes.writeUInt32BE(ttl, 6);
  bytes.writeUInt16BE(4, 10);
  bytes.set(address.split(".").map(Number), 12);
  return bytes;
}

/** The largest UDP payload accepted from a client: fits an IPv6 packet on every link. */
const PAYLOAD = 1232;

/** RFC 6891 section 6.1.3: upper bits of the code, version 0. RFC 3225 section 3: the DO bit is copied. */
function optRecord(code: Code, { dnssec }: Edns): Buffer {
  const bytes = Buffer.alloc(11);
  bytes.writeUInt16BE(TYPE_OPT, 1);
  bytes.writeUInt16BE(PAYLOAD, 3);
  bytes.writeUInt8(code >> 4, 5);
  bytes.writeUInt16BE(dnssec ? 0x8000 : 0, 7);
  return bytes;
}

/** Prints the question's name in master file format (RFC 1035 section 5.1): terminals and logs get no raw bytes. */
export function printableName({ question }: Query): string {
  const labels = readLabels(question, 0)?.labels ?? [];
  return labels.length === 0 ? "." : labels.map((label) => Array.from(label, printable).join("")).join(".");
}

function printable(byte: number): string {
  const character = String.fromCharCode(byte);
  if (character === "." || character === "\\") return `\\${character}`;
  return byte > 0x20 && byte < 0x7f ? character : `\\${String(byte).padStart(3, "0")}`;
}
