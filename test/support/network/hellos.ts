/** ClientHellos as bytes: made field by field, or as OpenSSL makes them. */
import { Duplex } from "node:stream";
import { connect } from "node:tls";
import { domainToASCII } from "node:url";
import { type FirstBytes, FirstBytesReader } from "../../../broker/network/first-bytes.ts";

export type HelloShape = {
  readonly names?: readonly string[];
  /** Extensions before and after the name, as type and data. */
  readonly before?: readonly (readonly [type: number, data: Uint8Array])[];
  readonly after?: readonly (readonly [type: number, data: Uint8Array])[];
  readonly sessionId?: number;
  readonly suites?: number;
};

/** The handshake message, without records (RFC 8446 §4.1.2). */
export function helloMessage({
  names = [],
  before = [],
  after = [],
  sessionId = 32,
  suites = 17,
}: HelloShape): Buffer {
  const entries = names.map((name) => Buffer.concat([Buffer.of(0), sized(2, Buffer.from(name, "latin1"))]));
  const own: (readonly [number, Uint8Array])[] =
    names.length === 0 ? [] : [[0, sized(2, Buffer.concat(entries))]];
  const extensions = [...before, ...own, ...after].map(([type, data]) =>
    Buffer.concat([Buffer.of(type >> 8, type & 255), sized(2, data)]),
  );
  const body = Buffer.concat([
    Buffer.of(3, 3),
    Buffer.alloc(32, 7),
    sized(1, Buffer.alloc(sessionId, 1)),
    sized(2, Buffer.alloc(2 * suites, 2)),
    sized(1, Buffer.of(0)),
    sized(2, Buffer.concat(extensions)),
  ]);
  return Buffer.concat([Buffer.of(1, 0, body.length >> 8, body.length & 255), body]);
}

/** The message in records of at most `sizes` bytes, in turn. */
export function records(message: Uint8Array, sizes: readonly number[] = [16_384]): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0, index = 0; at < message.length; index += 1) {
    const size = sizes[index % sizes.length] ?? 1;
    const fragment = message.subarray(at, at + size);
    parts.push(Buffer.concat([Buffer.of(22, 3, 1), sized(2, fragment)]));
    at += fragment.length;
  }
  return Buffer.concat(parts);
}

/** What Node's own TLS client sends first. */
export function realHello(servername: string): Promise<Buffer> {
  return new Promise((resolve) => {
    const wire = new Duplex({
      read: () => undefined,
      write: (bytes: Buffer) => {
        resolve(bytes);
        wire.destroy();
      },
    });
    connect({ socket: wire, servername }).on("error", () => undefined);
  });
}

/** Behind its length in `size` bytes. */
export function sized(size: 1 | 2, bytes: Uint8Array): Buffer {
  const length = size === 1 ? Buffer.of(bytes.length) : Buffer.of(bytes.length >> 8, bytes.length & 255);
  return Buffer.concat([length, bytes]);
}

// Reads bytes as what a client says first that dialled `NAME`.

export const NAME = "good.example";

/** Normalizes a host name for these tests: one spelling per name. */
export function spell(text: string): string | null {
  if (/[^A-Za-z0-9._\u0080-\uffff-]/.test(text) || /(?:^|\.)\d+\.?$/.test(text)) return null;
  const ascii = domainToASCII(text.replace(/\.$/, ""));
  return ascii === "" ? null : ascii;
}

export function read(bytes: Uint8Array, name = NAME): FirstBytes {
  return new FirstBytesReader(name, spell).push(bytes);
}

export function readByBytes(bytes: Uint8Array): FirstBytes {
  const reader = new FirstBytesReader(NAME, spell);
  for (const byte of bytes) reader.push(Uint8Array.of(byte));
  return reader.answer;
}

export function ended(text: string): FirstBytes {
  const reader = new FirstBytesReader(NAME, spell);
  reader.push(Buffer.from(text, "latin1"));
  return reader.end();
}

export function tls(named: string): FirstBytes {
  return { kind: "disagrees", protocol: "tls", named };
}
