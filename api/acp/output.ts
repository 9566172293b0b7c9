/** A terminal's output as text: its end, up to a limit, cut between characters. */
import { StringDecoder } from "node:string_decoder";

export class OutputTail {
  readonly #limit: number;
  readonly #decoders = { stdout: new StringDecoder("utf8"), stderr: new StringDecoder("utf8") };
  #parts: Buffer[] = [];
  #length = 0;
  #isCut = false;

  /** @param limit bytes to keep */
  constructor(limit: number) {
    this.#limit = limit;
  }

  push(stream: "stdout" | "stderr", bytes: Buffer): void {
    // Each stream has its decoder: a character may be split over two pieces with the other stream's piece between.
    this.say(this.#decoders[stream].write(bytes));
  }

  say(text: string): void {
    const bytes = Buffer.from(text);
    this.#parts.push(bytes);
    this.#length += bytes.length;
    // Trimmed at twice the limit, so that each byte is copied once or twice at most.
    if (this.#length > 2 * this.#limit + 65_536) this.#trim();
  }

  /** Returns the last `most` bytes of what is kept. */
  read(most = this.#limit): { readonly output: string; readonly truncated: boolean } {
    this.#trim();
    const [all = Buffer.alloc(0)] = this.#parts;
    const output = tailOf(all, most);
    return { output: output.toString("utf8"), truncated: this.#isCut || output.length < all.length };
  }

  #trim(): void {
    const all = Buffer.concat(this.#parts);
    const kept = tailOf(all, this.#limit);
    this.#isCut ||= kept.length < all.length;
    // A copy: a part would keep the whole alive.
    this.#parts = [kept.length < all.length ? Buffer.from(kept) : all];
    this.#length = kept.length;
  }
}

/** Cuts before a character: bytes 10xxxxxx continue one in UTF-8. */
function tailOf(bytes: Buffer, most: number): Buffer {
  let from = Math.max(0, bytes.length - most);
  while (from > 0 && from < bytes.length && ((bytes[from] ?? 0) & 0xc0) === 0x80) from += 1;
  return bytes.subarray(from);
}
