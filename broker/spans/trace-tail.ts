import { closeSync, fstatSync, openSync, readFileSync, readSync } from "node:fs";
import { readLink } from "./chain.ts";
import { openOrNothing, rotatedParts } from "./trace-parts.ts";

const NEWLINE = 0x0a;
const CHUNK = 256 * 1024;

/** Bound on bytes of older files read for the last lines, which limits the wait for a rare kind of line. */
const MOST_BACK = 256 * 1024 * 1024;

/** Follows the end of a growing trace, across rotations by another process. */
export class TraceTail {
  readonly #live: string;
  #file: number;
  /** Position after the last complete line read. */
  #offset: number;
  /** Number of that line; undefined before the first. */
  #seq: number | undefined;

  constructor(live: string) {
    this.#live = live;
    this.#file = openSync(live, "r");
    this.#offset = fstatSync(this.#file).size;
  }

  /** Returns the last matching lines, at most `count`, oldest first; then {@link next} continues. */
  last(count: number, isWanted: (line: string) => boolean): readonly string[] {
    const wanted = this.#lastOfLive(count, isWanted);
    let left = MOST_BACK;
    for (const { path, size } of [...rotatedParts(this.#live)].reverse()) {
      if (wanted.length >= count || left <= 0) break;
      left -= size;
      const lines = linesOf(readFileSync(path)).map((line) => line.toString("utf8"));
      wanted.unshift(...lines.filter(isWanted).slice(wanted.length - count));
    }
    return wanted;
  }

  #lastOfLive(count: number, isWanted: (line: string) => boolean): string[] {
    const size = this.#offset;
    for (let back = Math.min(CHUNK, size); ; back = Math.min(back * 4, size)) {
      const bytes = this.#bytes(size - back, back);
      const begin = back === size ? 0 : bytes.indexOf(NEWLINE) + 1;
      const whole = bytes.subarray(begin, bytes.lastIndexOf(NEWLINE) + 1);
      const lines = linesOf(whole).map((line) => line.toString("utf8"));
      const wanted = lines.filter(isWanted);
      if (wanted.length < count && back < size) continue;
      this.#goTo(size - back + begin + whole.length, whole);
      return wanted.slice(Math.max(0, wanted.length - count));
    }
  }

  /** Returns the lines written since, oldest first. */
  next(): readonly string[] {
    const lines = this.#read();
    const following = this.#following();
    if (following === undefined) return lines;
    // The file was rotated, so its remaining lines can be read to the end.
    const rest = this.#read();
    closeSync(this.#file);
    this.#file = following;
    this.#offset = 0;
    return [...lines, ...rest, ...this.next()];
  }

  close(): void {
    closeSync(this.#file);
  }

  /** Opens the file after the current one; undefined while the current file is live. */
  #following(): number | undefined {
    const live = openOrNothing(this.#live);
    if (live === undefined) return undefined;
    if (fstatSync(live).ino === fstatSync(this.#file).ino) {
      closeSync(live);
      return undefined;
    }
    const missed = rotatedParts(this.#live).find(({ first }) => this.#seq !== undefined && first > this.#seq);
    if (missed === undefined) return live;
    closeSync(live);
    return openSync(missed.path, "r");
  }

  #read(): readonly string[] {
    const bytes = this.#bytes(this.#offset, fstatSync(this.#file).size - this.#offset);
    const whole = bytes.subarray(0, bytes.lastIndexOf(NEWLINE) + 1);
    this.#goTo(this.#offset + whole.length, whole);
    return linesOf(whole).map((line) => line.toString("utf8"));
  }

  #goTo(offset: number, read: Buffer): void {
    this.#offset = offset;
    const last = linesOf(read).at(-1);
    const link = last === undefined ? undefined : readLink(last);
    if (link !== undefined && "seq" in link) this.#seq = link.seq;
  }

  #bytes(from: number, length: number): Buffer {
    const bytes = Buffer.alloc(Math.max(0, length));
    const count = readSync(this.#file, bytes, 0, bytes.length, from);
    return bytes.subarray(0, count);
  }
}

function linesOf(bytes: Buffer): readonly Buffer[] {
  const lines: Buffer[] = [];
  for (let at = 0, end = bytes.indexOf(NEWLINE); end !== -1; at = end + 1, end = bytes.indexOf(NEWLINE, at))
    lines.push(bytes.subarray(at, end));
  return lines;
}
