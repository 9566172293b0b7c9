/** Reads the hosts named by a connection's first HTTP/1 request (RFC 9112 §2.2, §3.2 and §5, RFC 9110 §7.2). */
import { Gathered } from "./gathered.ts";
import { HostLineWatch } from "./host-line-watch.ts";
import type { ProtocolReader, Reading, ReadingEnd } from "./first-bytes.ts";

const CR = 13;
const LF = 10;

/** RFC 9110 §5.6.2. */
const METHOD_BYTE = /[!#$%&'*+.^_`|~0-9A-Za-z-]/;
/** The longest request line that a known server reads has 64 KiB (Python's http.server); a longer line, or first word, is no request. */
const MAX_LINE = 64 * 1024 - 1;
/** Before Python's further blanks: binary protocols begin with shorter words, LDAP with `0` and a length. */
const METHOD_NAME = /^[A-Za-z][\w-]{2,}$/;

const HTTP_VERSION = /^HTTP\/\d/i;
/** Node serves RTSP/1.0 and ICE/1.0 by `Host` too. */
const VERSION = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+\/\d/;
/** A path, `*`, or an absolute target. */
const TARGET = /^(?:[/*]|[a-z][a-z0-9+.-]*:\/\/)/i;
/** Where lenient servers part the words of a request line. */
// oxlint-disable-next-line no-control-regex -- Python counts them among the blanks
const BLANKS = /[ \t\v\f\r\x1c-\x1f\x85\xa0]+/;
/** Method of the HTTP/2 preface (RFC 9113 §3.4). `FirstBytesReader` handles the exact preface itself. */
const HTTP2_METHOD = "PRI";

const MORE: Reading = { kind: "more" };
const WATCH: Reading = { kind: "watch" };

/**
 * Reads a request line and its headers, and reports every host: an absolute target, the target of CONNECT, each `Host`.
 * Servers differ in leniency, so a host counts if any server would accept it: folded lines, blanks around the name,
 * lines that only some servers take for a continuation. Line ends that only some servers accept are refused: a bare CR,
 * and a bare LF after a line with CR LF.
 *
 * Some servers also read headers behind a first line of another version (`RTSP/1.0`) or of none (`GET /`). Clients of
 * other protocols send such lines and wait for the answer, so these lines are released and the next ones watched: from
 * a `Host` line on, the bytes are held and read as headers of HTTP. A first line whose first word is no method (`@GET`) is
 * released and watched too: Python's servers take any word.
 */
export class HttpHostReader implements ProtocolReader {
  readonly protocol = "http";
  #stage: "blank" | "method" | "odd" | "target" | "headers" = "blank";
  #method = "";
  /** The current word, or the current line without the method; empty while lines are watched. */
  readonly #line = new Gathered();
  /** The value of the last `Host` line; the next line may continue it. */
  #host: string | undefined;
  #hasCrLf = false;
  #hasPythonBlank = false;
  /** Defined while lines are watched. */
  #watch: HostLineWatch | undefined;
  /** Bytes of all earlier pushes. */
  #taken = 0;
  #released = 0;

  /** A single word cannot name a host yet, and a part of `host:` names none. */
  get isHarmless(): boolean {
    if (this.#watch !== undefined) return true;
    // A binary protocol may begin with one of Python's blanks, and its clients wait for an answer.
    return this.#stage === "target" ? this.#hasPythonBlank : this.#stage !== "headers";
  }

  get released(): number {
    return this.#released;
  }

  push(bytes: Uint8Array, see: (name: string) => void): Reading {
    let at = 0;
    while (at < bytes.length && (this.#stage === "blank" || this.#stage === "method")) {
      const byte = bytes[at] ?? LF;
      at += 1;
      if (this.#readMethod(byte)) continue;
      if (byte === LF) return { kind: "opaque" };
      this.#stage = "odd";
    }
    if (this.#stage === "odd") {
      const end = bytes.indexOf(LF, at);
      this.#line.add(bytes.subarray(at, end === -1 ? bytes.length : end));
      at = end === -1 ? bytes.length : end + 1;
      const isOther = end === -1 ? this.#line.length > MAX_LINE : !this.#readOddLine(see);
      if (isOther) return { kind: "opaque" };
      this.#released = this.#taken + at;
    }
    while (at < bytes.length) {
      if (this.#watch !== undefined) {
        const found = this.#watch.push(bytes[at] ?? LF);
        at += 1;
        if (found === "end") return { kind: "opaque" };
        if (found === "host") this.#endWatch(this.#watch);
        else if (!this.#watch.isCandidate) this.#released = this.#taken + at;
        continue;
      }
      const end = bytes.indexOf(LF, at);
      const part = bytes.subarray(at, end === -1 ? bytes.length : end);
      this.#line.add(part);
      if (this.#stage === "target" && part.includes(0)) return this.#readNul();
      if (end === -1) break;
      at = end + 1;
      const reading = this.#readLine(see);
      if (reading.kind === "watch") this.#released = this.#taken + at;
      else if (reading.kind !== "more") return reading;
    }
    this.#taken += bytes.length;
    return this.#stage === "odd" || this.#watch?.isCandidate === false ? WATCH : MORE;
  }

  /** Reports a truncated request's hosts too: some servers answer truncated requests. */
  finish(see: (name: string) => void): ReadingEnd {
    const isWord = this.#stage === "blank" || this.#stage === "method" || this.#stage === "odd";
    if (isWord || this.#watch !== undefined) return { kind: "opaque" };
    const reading = this.#readLine(see, true);
    this.#showHost(see);
    if (reading.kind === "watch") return { kind: "opaque" };
    return reading.kind === "broken" || reading.kind === "opaque" ? reading : { kind: "end" };
  }

  /** Returns false when the first word is not a method, or stands alone on its line. */
  #readMethod(byte: number): boolean {
    if (this.#stage === "blank") {
      this.#hasPythonBlank ||= isPythonBlank(byte);
      if (isBlank(byte) || isPythonBlank(byte) || byte === LF) return true;
      this.#stage = "method";
    }
    if (isBlank(byte) || isPythonBlank(byte)) return this.#endMethod(byte);
    this.#line.add(Uint8Array.of(byte));
    return isMethodByte(byte) && this.#line.length <= MAX_LINE;
  }

  /** Reads a first line without a method; false when no server takes it for HTTP. */
  #readOddLine(see: (name: string) => void): boolean {
    const whole = textOf(this.#line.take());
    const words = whole.split(BLANKS);
    if (!words.some((word) => HTTP_VERSION.test(word))) return false;
    for (const word of words) showAbsolute(word, see);
    this.#stage = "headers";
    this.#watch = new HostLineWatch(whole.endsWith("\r"));
    return true;
  }

  #endMethod(blank: number): boolean {
    this.#method = textOf(this.#line.take());
    this.#stage = "target";
    // The CR may belong to the line end.
    if (blank === CR) this.#line.add(Uint8Array.of(CR));
    this.#hasPythonBlank ||= isPythonBlank(blank);
    return !isPythonBlank(blank) || METHOD_NAME.test(this.#method);
  }

  /** Reads the rest of a `Host` line, and all lines behind it, like headers of HTTP. */
  #endWatch({ hasCrLf, name }: HostLineWatch): void {
    this.#watch = undefined;
    this.#hasCrLf = hasCrLf;
    this.#line.add(Buffer.from(name, "latin1"));
  }

  #readLine(see: (name: string) => void, isLast = false): Reading {
    const whole = textOf(this.#line.take());
    const hasCr = whole.endsWith("\r");
    const line = hasCr ? whole.slice(0, -1) : whole;
    if (this.#stage === "target") {
      const reading = this.#readTarget(line, see);
      this.#stage = "headers";
      if (reading.kind === "watch") this.#watch = new HostLineWatch(hasCr);
      if (reading.kind !== "more") return reading;
    } else {
      if (!isLast && !hasCr && this.#hasCrLf) return broken("a line of its header ends with a bare LF");
      if (!isLast && line === "") return this.#endHeaders(see);
      this.#readHeader(line, see);
    }
    if (line.includes("\r")) return broken("its header has a bare CR");
    this.#hasCrLf ||= hasCr;
    return MORE;
  }

  /**
   * Handles a NUL in the request line. git's own protocol begins with a word, a blank and text with a NUL, and HTTP
   * servers refuse a NUL.
   */
  #readNul(): Reading {
    return /^[A-Za-z]+$/.test(this.#method) ? broken("its request line has a NUL") : { kind: "opaque" };
  }

  /**
   * A request line without version is not HTTP, or HTTP/0.9. Its headers are watched where a known server may read them:
   * Python's http.server after any GET, http_parser (in PHP's own server) after any method with a path.
   */
  #readTarget(line: string, see: (name: string) => void): Reading {
    const words = line.split(BLANKS);
    const isHttp = words.some((word) => HTTP_VERSION.test(word));
    const mayBeHttp = this.#method === "GET" || words.some((word) => VERSION.test(word));
    // Almost the HTTP/2 preface: some servers accept it as HTTP/2, others as HTTP/1.
    if (isHttp && this.#method.toUpperCase() === HTTP2_METHOD)
      return broken("it begins like HTTP/2 but is not HTTP/2");
    if (mayBeHttp) {
      for (const word of words) if (!HTTP_VERSION.test(word)) this.#readTargetWord(word, see);
      // Servers that part words at spaces alone read a longer authority.
      for (const word of line.split(" ")) showAbsolute(word, see);
    }
    if (isHttp) return MORE;
    return mayBeHttp || words.some((word) => TARGET.test(word)) ? WATCH : { kind: "opaque" };
  }

  #readTargetWord(word: string, see: (name: string) => void): void {
    if (!showAbsolute(word, see) && this.#method.toUpperCase() === "CONNECT") showAuthority(word, see);
  }

  #readHeader(line: string, see: (name: string) => void): void {
    const isFolded = line.startsWith(" ") || line.startsWith("\t");
    if (isFolded && this.#host !== undefined) this.#host += ` ${withoutBlanks(line)}`;
    else this.#showHost(see);
    const value = hostValue(line);
    if (value === undefined) return;
    if (isFolded) showAuthority(value, see);
    else this.#host = value;
  }

  #endHeaders(see: (name: string) => void): Reading {
    this.#showHost(see);
    return { kind: "end" };
  }

  #showHost(see: (name: string) => void): void {
    if (this.#host !== undefined) showAuthority(this.#host, see);
    this.#host = undefined;
  }
}

/** Returns the value of a `Host` line. Some servers ignore blanks and control characters around the header's name. */
function hostValue(line: string): string | undefined {
  const colon = line.indexOf(":");
  if (colon === -1) return undefined;
  const name = line.slice(0, colon).replaceAll(/[^\x21-\x7e]/g, "");
  return name.toLowerCase() === "host" ? line.slice(colon + 1) : undefined;
}

function textOf({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, length).toString("latin1");
}

function broken(why: string): Reading {
  return { kind: "broken", why };
}

function isMethodByte(byte: number): boolean {
  return METHOD_BYTE.test(String.fromCharCode(byte));
}

const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;

type See = (name: string) => void;

/**
 * Reports the host of an authority. Skips an empty value: clients without a server name send an empty `Host` (RFC 9110
 * §7.2).
 */
function showAuthority(value: string, see: See): void {
  const trimmed = withoutBlanks(value);
  if (trimmed !== "") see(hostOf(trimmed));
}

/** Reports the host of an absolute target (RFC 9112 §3.2.2); false for any other target. */
function showAbsolute(target: string, see: See): boolean {
  const scheme = SCHEME.exec(target)?.[0];
  if (scheme === undefined) return false;
  see(hostOf(target.slice(scheme.length).split(/[/?#\\]/, 1)[0] ?? ""));
  return true;
}

/** Trims HTTP blanks only. `trim` also removes Unicode blanks, and no server does so. */
function withoutBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isBlank(text.charCodeAt(start))) start += 1;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

/** Whether lenient servers separate words at this byte: blank, tab, vertical tab, form feed, CR. */
function isBlank(byte: number): boolean {
  return byte === 32 || byte === 9 || (byte >= 11 && byte <= 13);
}

/** Whether Python's `str.split` also parts the words of a latin-1 text at this byte. */
function isPythonBlank(byte: number): boolean {
  return (byte >= 0x1c && byte <= 0x1f) || byte === 0x85 || byte === 0xa0;
}

/** Drops the port. User names and brackets stay, so the result is then not a valid host name. */
function hostOf(authority: string): string {
  return authority.replace(/:\d*$/, "");
}
