/** Compares the host named in a client's first bytes (TLS SNI, HTTP Host) with the name dialled. */
import { ClientHelloReader, looksLikeSslv2, SSLV2_LOOK } from "./client-hello.ts";
import { HttpHostReader } from "./http-host.ts";

/** The preface of HTTP/2 with prior knowledge (RFC 9113 §3.4). */
const HTTP2_PREFACE: Uint8Array = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/** Enough to name a host: a usual ClientHello has 2 KiB, a large request header 16 KiB. */
export const MAX_FIRST_BYTES = 64 * 1024;

/**
 * The verdict on the bytes so far.
 *
 * - `undecided`: hold the bytes back and read on.
 * - `agrees`: TLS or HTTP naming the right host, or no host. Release the bytes; until the reader is settled, keep
 *   pushing: later bytes can still make the verdict `undecided` or worse.
 * - `unreadable`: neither TLS nor HTTP; the connection passes. As with `agrees`, keep pushing until the reader is settled.
 * - `http2`: HTTP/2 without TLS. Its compressed host names are not read, like the content of TLS: the connection
 *   passes, and its line in the trace says so.
 * - `disagrees`: the bytes name another host. `named`: non-ASCII and control characters as `?`, cut at the longest host
 *   name.
 * - `malformed`: the bytes begin as TLS or HTTP and then break the format, so a server might read another host.
 */
export type FirstBytes =
  | { readonly kind: "undecided" }
  | { readonly kind: "agrees" }
  | { readonly kind: "unreadable" }
  | { readonly kind: "http2" }
  | { readonly kind: "disagrees"; readonly protocol: "tls" | "http"; readonly named: string }
  | { readonly kind: "malformed"; readonly protocol: "tls" | "http"; readonly why: string };

/** Normalizes a host name (lower case, no trailing dot, IDN as ASCII); null for text that is not a host name. */
export type SpellHost = (text: string) => string | null;

/**
 * A protocol reader's verdict on the bytes so far. `more`: hold them. `pass`: release them and read on. `watch`: the
 * protocol is probably another; release them and read on. `opaque`: the protocol is another after all.
 */
export type Reading = { readonly kind: "more" | "pass" | "watch" } | ReadingEnd;
export type ReadingEnd =
  | { readonly kind: "end" }
  | { readonly kind: "opaque" }
  | { readonly kind: "broken"; readonly why: string };

/** Reads the start of one protocol and reports each host name to `see`, in order. */
export interface ProtocolReader {
  readonly protocol: "tls" | "http";
  push(bytes: Uint8Array, see: (name: string) => void): Reading;
  /** Returns the final verdict once the client has sent FIN. */
  finish(see: (name: string) => void): ReadingEnd;
  /** Whether no part of a request has come yet; then the bytes may be released. */
  readonly isHarmless: boolean;
  /** First bytes released by `watch`, which do not count for `MAX_FIRST_BYTES`. */
  readonly released: number;
}

const IN_ASCII = /^[\x21-\x7e]*$/;

const UNDECIDED: FirstBytes = { kind: "undecided" };

/**
 * Reads a client's first bytes. Never throws; takes time linear in the bytes. The verdict does not depend on how the
 * bytes are split, and a settled verdict stays.
 *
 * Not seen: the inner name of an encrypted ClientHello (ECH), TLS begun in mid-stream (STARTTLS), later requests of an
 * HTTP/1.1 connection, and all requests of HTTP/2.
 */
export class FirstBytesReader {
  readonly #name: string;
  readonly #spell: SpellHost;
  #reader: ProtocolReader | undefined;
  /** Bytes before the protocol is known; at most as long as `HTTP2_PREFACE`. */
  #start: Uint8Array = new Uint8Array(0);
  #seen = 0;
  #other: string | undefined;
  #decided: FirstBytes = UNDECIDED;
  #isSettled = false;

  /** `name` is the dialled host. */
  constructor(name: string, spell: SpellHost) {
    this.#name = spell(name) ?? name;
    this.#spell = spell;
  }

  /** The verdict so far. */
  get answer(): FirstBytes {
    return this.#decided;
  }

  /** Whether the verdict is final. */
  get isSettled(): boolean {
    return this.#isSettled;
  }

  /**
   * Whether the bytes are still too few for a request or a ClientHello, say a single word. A client waiting for an
   * answer to so little speaks another protocol: the bytes may be released, and reading goes on.
   */
  get isHarmless(): boolean {
    return this.#decided.kind === "undecided" && (this.#reader?.isHarmless ?? true);
  }

  push(bytes: Uint8Array): FirstBytes {
    for (let rest = bytes; rest.length > 0 && !this.#isSettled; ) {
      const counted = this.#seen - (this.#reader?.released ?? 0);
      const room = rest.subarray(0, MAX_FIRST_BYTES - counted);
      if (room.length === 0) this.#stopReading();
      else this.#decided = this.#read(room);
      this.#seen += room.length;
      rest = rest.subarray(room.length);
    }
    return this.#decided;
  }

  /** Call when the client has sent FIN. Afterwards the verdict is no longer `undecided`. */
  end(): FirstBytes {
    if (this.#isSettled) return this.#decided;
    const reading = this.#reader?.finish(this.#see) ?? { kind: "opaque" };
    this.#decided = this.#judge(reading);
    return this.#decided;
  }

  readonly #see = (name: string): void => {
    // A server may decode non-ASCII bytes differently.
    const spelled = IN_ASCII.test(name) ? this.#spell(name) : null;
    if (spelled !== this.#name) this.#other ??= shown(name);
  };

  #read(bytes: Uint8Array): FirstBytes {
    if (this.#reader !== undefined) return this.#judge(this.#reader.push(bytes, this.#see));
    const start = joined(this.#start, bytes);
    const protocol = protocolOf(start);
    if (protocol === undefined) {
      this.#start = start;
      return UNDECIDED;
    }
    this.#start = new Uint8Array(0);
    if (protocol === "http2") {
      this.#isSettled = true;
      return { kind: "http2" };
    }
    if (protocol === "sslv2") return this.#judge({ kind: "broken", why: "it is an SSL 2 hello" });
    this.#reader = protocol === "tls" ? new ClientHelloReader() : new HttpHostReader();
    return this.#judge(this.#reader.push(start, this.#see));
  }

  /** Stops after `MAX_FIRST_BYTES`: four times the early data that BoringSSL and OpenSSL skip (16 KiB). */
  #stopReading(): void {
    this.#isSettled = true;
    if (this.#decided.kind === "undecided")
      this.#decided = this.#broken(`it is longer than ${MAX_FIRST_BYTES} bytes`);
  }

  #judge(reading: Reading): FirstBytes {
    this.#isSettled = this.#other !== undefined || !["more", "pass", "watch"].includes(reading.kind);
    if (this.#other !== undefined)
      return { kind: "disagrees", protocol: this.#reader?.protocol ?? "tls", named: this.#other };
    switch (reading.kind) {
      case "more":
        return UNDECIDED;
      case "pass":
      case "end":
        return { kind: "agrees" };
      case "watch":
      case "opaque":
        return { kind: "unreadable" };
      case "broken":
        return this.#broken(reading.why);
    }
  }

  #broken(why: string): FirstBytes {
    return { kind: "malformed", protocol: this.#reader?.protocol ?? "tls", why };
  }
}

/** RFC 1035 §2.3.4 allows 253 letters; the 254th shows the cut. */
const MOST_SHOWN = 254;

/** Escapes a name for the trace and the command's output: a program may read both line by line. */
function shown(name: string): string {
  return name.slice(0, MOST_SHOWN).replaceAll(/[^\x20-\x7e]/g, "?");
}

/** The content types of a TLS record: change_cipher_spec, alert, handshake, application_data, heartbeat. */
const FIRST_RECORD_TYPE = 20;
const LAST_RECORD_TYPE = 24;
const ALERT = 21;
const HANDSHAKE = 22;
const CLIENT_HELLO = 1;
/** RFC 8446 §5.1. */
const MAX_FRAGMENT = 16_384;

/** The major version of every TLS record, and of SSL 3 (RFC 8446 §5.1: 0x0301 or 0x0303). */
const TLS_MAJOR = 3;

/**
 * Guesses the protocol from the first bytes; undefined while several are possible. Any other protocol is read as a line that
 * some server may take for HTTP. Every TLS record type counts as TLS:
 * servers skip some alerts before the ClientHello, so a foreign ClientHello could stand behind an alert.
 */
function protocolOf(start: Uint8Array): "tls" | "sslv2" | "http" | "http2" | undefined {
  const first = start[0];
  if (first === undefined) return undefined;
  if (first >= FIRST_RECORD_TYPE && first <= LAST_RECORD_TYPE) {
    const isTls = isTlsRecord(start);
    if (isTls !== false) return isTls === undefined ? undefined : "tls";
  }
  const isSslv2 = looksLikeSslv2(start);
  if (isSslv2 !== false) return isSslv2 === undefined && start.length < SSLV2_LOOK ? undefined : "sslv2";
  if (HTTP2_PREFACE.every((byte, index) => index >= start.length || byte === start[index]))
    return start.length < HTTP2_PREFACE.length ? undefined : "http2";
  return "http";
}

/**
 * Whether the bytes begin a record of TLS. Of another major version only a ClientHello or an alert counts: Java's and Go's servers take
 * both, and messages of other protocols may begin with the same record type.
 */
function isTlsRecord(start: Uint8Array): boolean | undefined {
  const [type, major, , high, low, message] = start;
  if (major === undefined || major === TLS_MAJOR) return major === undefined ? undefined : true;
  if (type !== ALERT && type !== HANDSHAKE) return false;
  if (high === undefined || low === undefined || message === undefined) return undefined;
  const length = high * 256 + low;
  return type === ALERT
    ? length === 2 && (message === 1 || message === 2)
    : message === CLIENT_HELLO && length <= MAX_FRAGMENT;
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array {
  if (one.length === 0) return other.slice(0, other.length);
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}
