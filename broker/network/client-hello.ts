/** Reads the ClientHellos at the start of a TLS connection (RFC 8446 §4.1 and §5.1). */
import type { ProtocolReader, Reading, ReadingEnd } from "./first-bytes.ts";
import { Gathered } from "./gathered.ts";
import { readHello } from "./hello-body.ts";

/** Bytes needed to recognize an SSL 2 hello. */
export const SSLV2_LOOK = 5;

const RECORD_HEADER = 5;
const CHANGE_CIPHER_SPEC_RECORD = 20;
const ALERT_RECORD = 21;
const HANDSHAKE_RECORD = 22;
const APPLICATION_DATA_RECORD = 23;
const TLS_MAJOR = 3;
/** RFC 8446 §5.1: a record holds at most 2^14 bytes, and a handshake record at least one. */
const MAX_FRAGMENT = 16_384;

const HANDSHAKE_HEADER = 4;
const CLIENT_HELLO = 1;
/** Far above the limit of servers. A longer ClientHello is refused by its length field, before its bytes have come. */
const MAX_HELLO = 65_536;
const EARLY_DATA_EXTENSION = 42;
const SUPPORTED_VERSIONS_EXTENSION = 43;

/**
 * Reassembles a ClientHello from its records and reports the names in it. A ClientHello may have no name.
 *
 * A TLS 1.3 server may ask for a second ClientHello (RFC 8446 §4.1.4), and some servers take the name from the second.
 * So after a ClientHello offering 1.3, records are read until the handshake visibly goes on without a second. Records
 * skipped by servers may stand between: change_cipher_spec (RFC 8446 §5), some alerts, and early data if offered.
 */
export class ClientHelloReader implements ProtocolReader {
  readonly protocol = "tls";
  /** A partial record shows no name yet, and no client waits for an answer to a partial record. */
  readonly isHarmless = false;
  readonly released = 0;
  #stage: "first" | "between" | "second" = "first";
  readonly #header = new Uint8Array(RECORD_HEADER);
  #headerFilled = 0;
  #leftInRecord = 0;
  #hasEarlyData = false;
  /** The handshake message, reassembled from the records. */
  readonly #message = new Gathered();

  push(bytes: Uint8Array, see: (name: string) => void): Reading {
    for (let at = 0; at < bytes.length; ) {
      if (this.#leftInRecord === 0) {
        at += this.#takeHeader(bytes.subarray(at));
        if (this.#headerFilled < RECORD_HEADER) break;
        this.#headerFilled = 0;
        const reading = this.#beginRecord();
        if (reading !== undefined) return reading;
        continue;
      }
      const fragment = bytes.subarray(at, at + this.#leftInRecord);
      at += fragment.length;
      this.#leftInRecord -= fragment.length;
      if (this.#stage === "between") continue;
      this.#message.add(fragment);
      const reading = this.#readMessage(see);
      if (reading !== undefined) return reading;
    }
    return { kind: this.#stage === "between" && this.#headerFilled === 0 ? "pass" : "more" };
  }

  finish(): ReadingEnd {
    if (this.#stage === "between" && this.#headerFilled === 0) return { kind: "end" };
    return { kind: "broken", why: "it ends within its ClientHello" };
  }

  #takeHeader(bytes: Uint8Array): number {
    const part = bytes.subarray(0, RECORD_HEADER - this.#headerFilled);
    this.#header.set(part, this.#headerFilled);
    this.#headerFilled += part.length;
    return part.length;
  }

  /** Checks a record header; undefined to read on. */
  #beginRecord(): ReadingEnd | undefined {
    const [type = 0, major, , high = 0, low = 0] = this.#header;
    const length = high * 256 + low;
    if (this.#stage === "between" && type !== HANDSHAKE_RECORD) {
      this.#leftInRecord = length;
      return this.#maySkip(type) ? undefined : { kind: "end" };
    }
    if (this.#stage === "between") this.#stage = "second";
    if (type !== HANDSHAKE_RECORD)
      return broken(`a record of type ${type} comes before the end of its ClientHello`);
    if (major !== TLS_MAJOR) return broken(`its ClientHello has a record of version ${major}`);
    if (length === 0 || length > MAX_FRAGMENT)
      return broken(`its ClientHello has a record of ${length} bytes`);
    this.#leftInRecord = length;
    return undefined;
  }

  #maySkip(type: number): boolean {
    const isData = type === APPLICATION_DATA_RECORD;
    return type === CHANGE_CIPHER_SPEC_RECORD || type === ALERT_RECORD || (isData && this.#hasEarlyData);
  }

  /** Reads a complete handshake message; undefined to read on. */
  #readMessage(see: (name: string) => void): ReadingEnd | undefined {
    const [type, high = 0, middle = 0, low = 0] = this.#message.bytes;
    if (type !== CLIENT_HELLO && this.#stage === "second") return { kind: "end" };
    if (type !== CLIENT_HELLO) return broken(`it begins with a handshake message ${type}`);
    const filled = this.#message.length;
    if (filled < HANDSHAKE_HEADER) return undefined;
    const length = high * 65_536 + middle * 256 + low;
    if (length > MAX_HELLO) return broken(`its ClientHello has ${length} bytes`);
    if (filled < HANDSHAKE_HEADER + length) return undefined;
    // RFC 8446 §5.1: a ClientHello ends with its record. Too short a length would hide extensions.
    if (filled > HANDSHAKE_HEADER + length || this.#leftInRecord > 0)
      return broken("its record goes on behind its ClientHello");
    const hello = readHello(this.#message.bytes.subarray(HANDSHAKE_HEADER));
    if (hello === undefined) return broken("its ClientHello is malformed");
    for (const name of hello.names) see(name);
    if (this.#stage === "second" || !hello.extensions.has(SUPPORTED_VERSIONS_EXTENSION))
      return { kind: "end" };
    this.#stage = "between";
    this.#hasEarlyData = hello.extensions.has(EARLY_DATA_EXTENSION);
    this.#message.take();
    return undefined;
  }
}

function broken(why: string): ReadingEnd {
  return { kind: "broken", why };
}

/**
 * Recognizes an SSL 2 hello (RFC 6101 Appendix E): two length bytes with the highest bit set, type 1, then a version.
 * Undefined while fewer than `SSLV2_LOOK` bytes leave both possible.
 */
export function looksLikeSslv2([length, , type, major, minor]: Uint8Array): boolean | undefined {
  if (length === undefined) return undefined;
  if (length < 0x80) return false;
  if (type === undefined) return undefined;
  if (type !== CLIENT_HELLO) return false;
  if (major === undefined) return undefined;
  if (major === TLS_MAJOR) return true;
  if (major !== 0) return false;
  return minor === undefined ? undefined : minor === 2;
}
