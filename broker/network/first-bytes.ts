/** What a client says first, compared with the name that its connection was opened for. */
import { ClientHelloReader, looksLikeSslv2, SSLV2_LOOK } from "./client-hello.ts";
import { HttpHostReader } from "./http-host.ts";

/** What HTTP/2 without TLS begins with, byte for byte (RFC 9113 §3.4). */
const HTTP2_PREFACE: Uint8Array = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/** No client needs more to say whom it means: a usual ClientHello has 2 KiB, a large request header 16 KiB. */
export const MAX_FIRST_BYTES = 64 * 1024;

/**
 * - `undecided`: read on, and hold back what came.
 * - `agrees`: TLS or HTTP that names the right host, or none. What came may go; until the reader is settled, what follows
 *   is to be pushed too, and can still be `undecided` or worse.
 * - `unreadable`: neither TLS nor HTTP; it passes.
 * - `http2`: HTTP/2 without TLS, whose hosts are compressed. Nobody reads them, as nobody reads what TLS hides: it passes, and
 *   the line of the connection says so.
 * - `disagrees`: it names another host: `named` in visible ASCII, the rest as `?`, and cut where no host name is longer.
 * - `malformed`: it began as TLS or HTTP and cannot be read on, so a server might read something else in it.
 */
export type FirstBytes =
  | { readonly kind: "undecided" }
  | { readonly kind: "agrees" }
  | { readonly kind: "unreadable" }
  | { readonly kind: "http2" }
  | { readonly kind: "disagrees"; readonly protocol: "tls" | "http"; readonly named: string }
  | { readonly kind: "malformed"; readonly protocol: "tls" | "http"; readonly why: string };

/** One spelling for each host name (lower case, no trailing dot, IDN as ASCII), or null for what is none. */
export type SpellHost = (text: string) => string | null;

/**
 * What one protocol's reader says of the bytes so far: `more` holds them, `pass` lets them go and reads on; `opaque` is
 * something else than it seemed to be.
 */
export type Reading = { readonly kind: "more" } | { readonly kind: "pass" } | ReadingEnd;
export type ReadingEnd =
  | { readonly kind: "end" }
  | { readonly kind: "opaque" }
  | { readonly kind: "broken"; readonly why: string };

/** Reads one protocol's beginning, and gives each name that it shows to `see`, in order. */
export interface ProtocolReader {
  readonly protocol: "tls" | "http";
  push(bytes: Uint8Array, see: (name: string) => void): Reading;
  /** The client has sent FIN: what can still be said of what came. */
  finish(see: (name: string) => void): ReadingEnd;
  /** Nothing of a request has come yet, so what came may go on. */
  readonly isHarmless: boolean;
}

const IN_ASCII = /^[\x21-\x7e]*$/;

const UNDECIDED: FirstBytes = { kind: "undecided" };

/**
 * Reads what a client sends first. It never throws, and takes time linear in the bytes. However the bytes are split,
 * the answer is the same; once settled it stays.
 *
 * What it does not see: what an encrypted ClientHello (ECH) means inside, TLS begun in mid-stream (STARTTLS), and every
 * request of a connection but the first of HTTP/1.1: a later one, and any of HTTP/2.
 */
export class FirstBytesReader {
  readonly #name: string;
  readonly #spell: SpellHost;
  #reader: ProtocolReader | undefined;
  /** What came before it was clear which protocol it is; at most as long as `HTTP2_PREFACE`. */
  #start: Uint8Array = new Uint8Array(0);
  #seen = 0;
  #other: string | undefined;
  #decided: FirstBytes = UNDECIDED;
  #isSettled = false;

  /** `name` is the host that the connection was opened for. */
  constructor(name: string, spell: SpellHost) {
    this.#name = spell(name) ?? name;
    this.#spell = spell;
  }

  /** The answer so far. */
  get answer(): FirstBytes {
    return this.#decided;
  }

  /** Whether nothing that follows changes the answer. */
  get isSettled(): boolean {
    return this.#isSettled;
  }

  /**
   * Whether what came is too little to be a request, or the beginning of a ClientHello: a single word, say. A client
   * that waits for an answer to it speaks something else, so it may pass, and the reading goes on after it.
   */
  get isHarmless(): boolean {
    return this.#decided.kind === "undecided" && (this.#reader?.isHarmless ?? true);
  }

  push(bytes: Uint8Array): FirstBytes {
    for (let rest = bytes; rest.length > 0 && !this.#isSettled; ) {
      const room = rest.subarray(0, MAX_FIRST_BYTES - this.#seen);
      if (room.length === 0) this.#stopReading();
      else this.#decided = this.#read(room);
      this.#seen += room.length;
      rest = rest.subarray(room.length);
    }
    return this.#decided;
  }

  /** The client sends no more. Afterwards the answer is no longer `undecided`. */
  end(): FirstBytes {
    if (this.#isSettled) return this.#decided;
    const reading = this.#reader?.finish(this.#see) ?? { kind: "opaque" };
    this.#decided = this.#judge(reading);
    return this.#decided;
  }

  readonly #see = (name: string): void => {
    // Beyond ASCII a server may read other letters than we do.
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
    if (protocol === "other") return this.#judge({ kind: "opaque" });
    if (protocol === "http2") {
      this.#isSettled = true;
      return { kind: "http2" };
    }
    if (protocol === "sslv2") return this.#judge({ kind: "broken", why: "it is a hello of SSL 2" });
    this.#reader = protocol === "tls" ? new ClientHelloReader() : new HttpHostReader();
    return this.#judge(this.#reader.push(start, this.#see));
  }

  /** Servers skip no more early data than a quarter of this (BoringSSL and OpenSSL: 16 KiB). */
  #stopReading(): void {
    this.#isSettled = true;
    if (this.#decided.kind === "undecided")
      this.#decided = this.#broken(`it is longer than ${MAX_FIRST_BYTES} bytes`);
  }

  #judge(reading: Reading): FirstBytes {
    this.#isSettled = this.#other !== undefined || (reading.kind !== "more" && reading.kind !== "pass");
    if (this.#other !== undefined)
      return { kind: "disagrees", protocol: this.#reader?.protocol ?? "tls", named: this.#other };
    switch (reading.kind) {
      case "more":
        return UNDECIDED;
      case "pass":
      case "end":
        return { kind: "agrees" };
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

/** RFC 1035 §2.3.4: 253 letters; one more shows that it was cut. */
const MOST_SHOWN = 254;

/** It stands in the trace and in a command's output, which a program may read line by line. */
function shown(name: string): string {
  return name.slice(0, MOST_SHOWN).replaceAll(/[^\x20-\x7e]/g, "?");
}

/** The content types of a TLS record: change_cipher_spec, alert, handshake, application_data, heartbeat. */
const FIRST_RECORD_TYPE = 20;
const LAST_RECORD_TYPE = 24;

/** The major version of every TLS record, and of SSL 3 (RFC 8446 §5.1: 0x0301 or 0x0303). */
const TLS_MAJOR = 3;

/**
 * By the first bytes. Each type of TLS record counts as TLS: servers skip some alerts before the hello, so a stranger's
 * hello could stand behind one. Undefined as long as it may be several.
 */
function protocolOf(start: Uint8Array): "tls" | "sslv2" | "http" | "http2" | "other" | undefined {
  const first = start[0];
  if (first === undefined) return undefined;
  if (first >= FIRST_RECORD_TYPE && first <= LAST_RECORD_TYPE) {
    if (start.length < 2) return undefined;
    return start[1] === TLS_MAJOR ? "tls" : "other";
  }
  const isSslv2 = looksLikeSslv2(start);
  if (isSslv2 !== false) return isSslv2 === undefined && start.length < SSLV2_LOOK ? undefined : "sslv2";
  if (HTTP2_PREFACE.every((byte, index) => index >= start.length || byte === start[index]))
    return start.length < HTTP2_PREFACE.length ? undefined : "http2";
  return HttpHostReader.mayBeginWith(first) ? "http" : "other";
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array {
  if (one.length === 0) return other.slice(0, other.length);
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}
