/** The hosts that the first request of an HTTP/2 connection without TLS names (RFC 9113 §3.4, §4.1 and §6). */
import type { ProtocolReader, Reading, ReadingEnd } from "./first-bytes.ts";
import { Gathered } from "./gathered.ts";
import { showHosts } from "./header-block.ts";

/** What such a connection begins with, byte for byte (RFC 9113 §3.4). */
export const HTTP2_PREFACE: Uint8Array = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

const FRAME_HEADER = 9;
/** RFC 9113 §4.2: a client may send more only when the server has said so, which nobody does for these frames. */
const MAX_FRAME = 16_384;
/** The frames of one header block together, so that endless CONTINUATIONs are not held. */
const MAX_BLOCK = 64 * 1024;

/** RFC 9113 §6. */
const DATA = 0;
const HEADERS = 1;
const RST_STREAM = 3;
const PUSH_PROMISE = 5;
const CONTINUATION = 9;

/** What nobody can say before there is a stream (RFC 9113 §5.1). */
const OF_STREAMS: ReadonlySet<number> = new Set([DATA, RST_STREAM, PUSH_PROMISE, CONTINUATION]);

const END_HEADERS = 0x4;
const PADDED = 0x8;
const PRIORITY = 0x20;
const PRIORITY_BYTES = 5;

type Frame = { readonly type: number; readonly flags: number; readonly stream: number };

/**
 * Reads frames up to the end of the first header block. What comes before it (SETTINGS, WINDOW_UPDATE, PING, PRIORITY,
 * and whatever a server must ignore: RFC 9113 §5.5) passes at once, frame by frame and in any number: some clients say
 * nothing more before they have heard of the server's settings.
 */
export class Http2HostReader implements ProtocolReader {
  readonly protocol = "http";
  readonly isHarmless = false;
  /** Nothing is held but a frame or a header block, and both have bounds of their own. */
  readonly isBounded = true;
  #part: "preface" | "header" | "payload" = "preface";
  /** Bytes of the part that have not come. */
  #left = HTTP2_PREFACE.length;
  /** The part as far as it came; nothing of one that is passed over. */
  readonly #gathered = new Gathered();
  #frame: Frame = { type: 0, flags: 0, stream: 0 };
  /** The header block as far as it came. */
  readonly #block = new Gathered();
  /** Of its frames; 0 before it has begun. */
  #blockSize = 0;

  push(bytes: Uint8Array, see: (name: string) => void): Reading {
    for (let at = 0; at < bytes.length; ) {
      at += this.#take(bytes.subarray(at));
      if (this.#left > 0) break;
      const reading = this.#endPart(see);
      if (reading !== undefined) return reading;
    }
    return { kind: this.#isBetweenFrames ? "pass" : "more" };
  }

  finish(): ReadingEnd {
    return this.#isBetweenFrames ? { kind: "end" } : broken("it ends within a frame");
  }

  get #isBetweenFrames(): boolean {
    return this.#part === "header" && this.#left === FRAME_HEADER && this.#blockSize === 0;
  }

  get #isOfBlock(): boolean {
    return this.#part === "payload" && (this.#frame.type === HEADERS || this.#frame.type === CONTINUATION);
  }

  #take(bytes: Uint8Array): number {
    const piece = bytes.subarray(0, this.#left);
    if (this.#part === "header" || this.#isOfBlock) this.#gathered.add(piece);
    this.#left -= piece.length;
    return piece.length;
  }

  /** Undefined to read on. */
  #endPart(see: (name: string) => void): ReadingEnd | undefined {
    if (this.#part === "header") return this.#beginPayload(see);
    if (this.#part === "payload") return this.#endFrame(see);
    return this.#expectHeader();
  }

  #expectHeader(): undefined {
    this.#part = "header";
    this.#left = FRAME_HEADER;
  }

  #beginPayload(see: (name: string) => void): ReadingEnd | undefined {
    const [high = 0, middle = 0, low = 0, type = 0, flags = 0, ...id] = this.#gathered.take();
    const length = high * 65_536 + middle * 256 + low;
    // The highest bit is reserved (RFC 9113 §4.1).
    const stream = id.reduce((sum, byte) => sum * 256 + byte, 0) % 2 ** 31;
    const wrong = this.#wrongWith({ type, flags, stream }, length);
    if (wrong !== undefined) return broken(wrong);
    this.#frame = { type, flags, stream };
    this.#part = "payload";
    this.#left = length;
    if (this.#isOfBlock) this.#blockSize += FRAME_HEADER + length;
    if (this.#blockSize > MAX_BLOCK) return broken(`its header is longer than ${MAX_BLOCK} bytes`);
    return length === 0 ? this.#endFrame(see) : undefined;
  }

  #wrongWith({ type, stream }: Frame, length: number): string | undefined {
    if (length > MAX_FRAME) return `a frame of ${length} bytes stands before the end of its first request`;
    const goesOn = type === CONTINUATION && stream === this.#frame.stream;
    if (this.#block.length > 0)
      return goesOn ? undefined : `a frame of type ${type} stands within its header`;
    if (OF_STREAMS.has(type)) return `a frame of type ${type} stands before its first request`;
    return type === HEADERS && stream === 0 ? "its first request is on no stream" : undefined;
  }

  #endFrame(see: (name: string) => void): ReadingEnd | undefined {
    if (!this.#isOfBlock) return this.#expectHeader();
    const { type, flags } = this.#frame;
    const payload = this.#gathered.take();
    const fragment = type === HEADERS ? fragmentOf(payload, flags) : payload;
    if (fragment === undefined) return broken("its header is shorter than its padding");
    this.#block.add(fragment);
    if ((flags & END_HEADERS) === 0) return this.#expectHeader();
    const wrong = showHosts(this.#block.bytes, see);
    return wrong === undefined ? { kind: "end" } : broken(wrong);
  }
}

/** RFC 9113 §6.2: the length of the padding, what the stream depends on, the fragment, the padding. */
function fragmentOf(payload: Uint8Array, flags: number): Uint8Array | undefined {
  const isPadded = (flags & PADDED) !== 0;
  const start = (isPadded ? 1 : 0) + ((flags & PRIORITY) === 0 ? 0 : PRIORITY_BYTES);
  const end = payload.length - (isPadded ? (payload[0] ?? 0) : 0);
  return start > end ? undefined : payload.subarray(start, end);
}

function broken(why: string): ReadingEnd {
  return { kind: "broken", why };
}
