/** What clients of HTTP/2 without TLS say first. */
import { connect } from "node:http2";
import { Duplex } from "node:stream";
import { HTTP2_PREFACE } from "../../../broker/network/http2-host.ts";

export const SETTINGS = 4;
export const HEADERS = 1;
export const CONTINUATION = 9;
export const END_HEADERS = 4;

/** RFC 9113 §4.1. */
export function frame(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const header = Buffer.alloc(9);
  header.writeUIntBE(payload.length, 0, 3);
  header[3] = type;
  header[4] = flags;
  header.writeUInt32BE(stream, 5);
  return Buffer.concat([header, payload]);
}

export type Coding = {
  /** How the field begins: with indexing, without, never to be indexed (RFC 7541 §6.2). */
  readonly way?: 0x40 | 0x00 | 0x10;
  /** Of a table, in place of the name. */
  readonly index?: number;
};

/** A literal field, uncoded. */
export function literal(name: string, value: string, { way = 0, index = 0 }: Coding = {}): Buffer {
  const prefix = way === 0x40 ? 6 : 4;
  const begin = integer(way, prefix, index);
  return Buffer.concat(index > 0 ? [begin, text(value)] : [begin, text(name), text(value)]);
}

/** RFC 7541 §5.1. */
export function integer(bits: number, prefix: number, value: number): Buffer {
  const most = 2 ** prefix - 1;
  if (value < most) return Buffer.of(bits | value);
  const bytes = [bits | most];
  for (let rest = value - most; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Buffer.of(...bytes, rest);
    bytes.push((rest % 128) | 128);
  }
}

function text(value: string): Buffer {
  return Buffer.concat([integer(0, 7, value.length), Buffer.from(value, "latin1")]);
}

/** The preface, settings, and one request with these fields in its header block. */
export function request(...fields: readonly Uint8Array[]): Buffer {
  return Buffer.concat([begun(), frame(HEADERS, END_HEADERS, 1, Buffer.concat(fields))]);
}

/** The preface and settings. */
export function begun(): Buffer {
  return Buffer.concat([HTTP2_PREFACE, frame(SETTINGS, 0, 0, Buffer.alloc(0))]);
}

/** What node's own client (nghttp2) writes when it asks for a page. */
export function writtenByNode(headers: Readonly<Record<string, string>>): Promise<Buffer> {
  const written: Buffer[] = [];
  return new Promise((resolve, reject) => {
    const sink = new Duplex({
      read: () => undefined,
      write: (bytes: Buffer, _, done) => {
        written.push(Buffer.from(bytes));
        done();
        setImmediate(() => session.destroy());
      },
    });
    const session = connect("http://any.example", { createConnection: () => sink });
    session.on("error", reject);
    session.on("close", () => resolve(Buffer.concat(written)));
    session.request({ ":path": "/", ...headers }).on("error", reject);
  });
}
