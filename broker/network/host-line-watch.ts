/** Finds a `Host` line behind a first line that only lenient servers take for a request of HTTP. */

const CR = 13;
const LF = 10;
const NAME: Uint8Array = Buffer.from("host:", "latin1");

/**
 * Watches the lines of a connection byte by byte, and stores none of them. Skips the same bytes in a header's name as
 * `HttpHostReader`. A bare CR begins a line too: Python's header parser splits there.
 */
export class HostLineWatch {
  /** Bytes of `NAME` read at the start of the line; -1 when the line has another name. */
  #matched = 0;
  /** Bytes since the last LF. */
  #length = 0;
  #previous = LF;
  #isFolded = false;
  #hasCrLf: boolean;

  /** `hasCrLf`: whether the request line ended with CR LF. */
  constructor(hasCrLf: boolean) {
    this.#hasCrLf = hasCrLf;
  }

  /** Whether the line so far is a part of `host:`. */
  get isCandidate(): boolean {
    return this.#matched > 0;
  }

  get hasCrLf(): boolean {
    return this.#hasCrLf;
  }

  /** The name of the `Host` line just found, as `HttpHostReader` reads it: a blank marks a folded line. */
  get name(): string {
    return this.#isFolded ? " host:" : "host:";
  }

  /** Returns `host` behind the colon of a `Host` line, and `end` at the empty line that ends the headers. */
  push(byte: number): "host" | "end" | "more" {
    const isLineStart = this.#previous === LF || this.#previous === CR;
    if (byte === LF && this.#endLine()) return "end";
    if (byte === LF || byte === CR) this.#matched = 0;
    else {
      if (isLineStart) this.#isFolded = byte === 32 || byte === 9;
      if (this.#matched >= 0 && isVisible(byte))
        this.#matched = lower(byte) === NAME[this.#matched] ? this.#matched + 1 : -1;
    }
    this.#length = byte === LF ? 0 : this.#length + 1;
    this.#previous = byte;
    return this.#matched === NAME.length ? "host" : "more";
  }

  /** Whether the line that ends here is empty for every server: some take no bare LF for a line end. */
  #endLine(): boolean {
    const hasCr = this.#previous === CR;
    const isEmpty = this.#length === (hasCr ? 1 : 0);
    if (isEmpty && (hasCr || !this.#hasCrLf)) return true;
    this.#hasCrLf ||= hasCr;
    return false;
  }
}

function isVisible(byte: number): boolean {
  return byte > 32 && byte < 127;
}

function lower(byte: number): number {
  return byte >= 65 && byte <= 90 ? byte + 32 : byte;
}
