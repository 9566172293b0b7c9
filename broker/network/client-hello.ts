/** The ClientHellos that a TLS connection begins with, out of their records (RFC 8446 §4.1 and §5.1). */
import type { ProtocolReader, Reading, ReadingEnd } from "./first-bytes.ts";
import { Gathered } from "./gathered.ts";
import { readHello } from "./hello-body.ts";

/** How many bytes tell a hello of SSL 2 from something else. */
export const SSLV2_LOOK = 5;

const RECORD_HEADER = 5;
const CHANGE_CIPHER_SPEC_RECORD = 20;
const ALERT_RECORD = 21;
const HANDSHAKE_RECORD = 22;
const APPLICATION_DATA_RECORD = 23;
const TLS_MAJOR = 3;
/** RFC 8446 §5.1: a record holds at most 2^14 bytes, and one of a handshake at least one. */
const MAX_FRAGMENT = 16_384;

const HANDSHAKE_HEADER = 4;
const CLIENT_HELLO = 1;
/** Far above what servers take; a hello that says it is longer is cut at once and not when its bytes have come. */
const MAX_HELLO = 65_536;
const EARLY_DATA_EXTENSION = 42;
const SUPPORTED_VERSIONS_EXTENSION = 43;

/**
 * Puts the records of a ClientHello together again and reads the names in it. A hello without one names nobody.
 *
 * A server of TLS 1.3 may ask for a second hello (RFC 8446 §4.1.4), and some take the name from that one. So the
 * records behind a hello that offers 1.3 are looked at until one shows that the handshake goes on without. What a
 * server skips may stand between: change_cipher_spec (RFC 8446 §5), some alerts, early data when it was offered.
 */
export class ClientHelloReader implements ProtocolReader {
  readonly protocol = "tls";
  /** A record that has begun tells nothing yet, but nobody waits for an answer to one. */
  readonly isHarmless = false;
  #stage: "first" | "between" | "second" = "first";
  readonly #header = new Uint8Array(RECORD_HEADER);
  #headerFilled = 0;
  #leftInRecord = 0;
  #hasEarlyData = false;
  /** The handshake message, out of the records. */
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

  /** Undefined to read on. */
  #beginRecord(): ReadingEnd | undefined {
    const [type = 0, major, , high = 0, low = 0] = this.#header;
    const length = high * 256 + low;
    if (this.#stage === "between" && type !== HANDSHAKE_RECORD) {
      this.#leftInRecord = length;
      return this.#maySkip(type) ? undefined : { kind: "end" };
    }
    if (this.#stage === "between") this.#stage = "second";
    if (type !== HANDSHAKE_RECORD)
      return broken(`a record of type ${type} stands before the end of its ClientHello`);
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

  /** Undefined to read on. */
  #readMessage(see: (name: string) => void): ReadingEnd | undefined {
    const [type, high = 0, middle = 0, low = 0] = this.#message.bytes;
    if (type !== CLIENT_HELLO && this.#stage === "second") return { kind: "end" };
    if (type !== CLIENT_HELLO) return broken(`it begins with a handshake message ${type}`);
    const filled = this.#message.length;
    if (filled < HANDSHAKE_HEADER) return undefined;
    const length = high * 65_536 + middle * 256 + low;
    if (length > MAX_HELLO) return broken(`its ClientHello has ${length} bytes`);
    if (filled < HANDSHAKE_HEADER + length) return undefined;
    // RFC 8446 §5.1: it ends with its record. A length that is too short would hide its extensions.
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
 * A hello of SSL 2 (RFC 6101 Appendix E): two bytes of length with the highest bit set, type 1, then a version.
 * Undefined as long as fewer than `SSLV2_LOOK` bytes do not tell.
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
