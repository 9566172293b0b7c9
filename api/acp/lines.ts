/** Lines of JSON in both directions: one at a time, as fast as the reader takes them. */
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";

/** Longest line. A longer one cannot be inspected, so it ends the connection. */
const MAX_LINE = 128 * 1024 * 1024;

/** Error: a side sent a line that is too long. */
export class LineTooLong extends Error {
  override readonly name = "LineTooLong";
}

/** Yields each line without its line feed; at the end, text without one is a line too. Throws {@link LineTooLong}. */
export async function* linesOf(stream: Readable): AsyncGenerator<Buffer> {
  let parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream) {
    let rest = chunk as Buffer;
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      parts.push(rest.subarray(0, end));
      yield parts.length === 1 ? rest.subarray(0, end) : Buffer.concat(parts);
      parts = [];
      length = 0;
      rest = rest.subarray(end + 1);
    }
    if (rest.length === 0) continue;
    parts.push(rest);
    length += rest.length;
    if (length > MAX_LINE) throw new LineTooLong(`A message has more than ${MAX_LINE / 1024 / 1024} MiB`);
  }
  if (length > 0) yield Buffer.concat(parts);
}

const LINE_FEED = Buffer.from("\n");

/** Writes messages to the editor or to the agent, one line each. */
export class LineWriter {
  readonly #to: Writable;
  #isOver = false;

  /** @param onBroken called once when the reader is gone */
  constructor(to: Writable, onBroken: () => void) {
    this.#to = to;
    to.once("error", () => {
      this.#isOver = true;
      onBroken();
    });
    to.once("close", () => {
      this.#isOver = true;
    });
  }

  /** Writes a line, and resolves when more may come. */
  async pass(line: Buffer): Promise<void> {
    this.#write(line);
    await this.ready();
  }

  /** Writes a message of our own. */
  send(message: object): void {
    this.#write(Buffer.from(JSON.stringify(message)));
  }

  /** Resolves when the reader has taken what was written, or is gone. */
  async ready(): Promise<void> {
    if (this.#isOver || !this.#to.writableNeedDrain) return;
    const over = new AbortController();
    const { signal } = over;
    await Promise.race(
      ["drain", "close"].map((name) => once(this.#to, name, { signal }).catch(() => undefined)),
    );
    over.abort();
  }

  get isBehind(): boolean {
    return this.#to.writableNeedDrain;
  }

  end(): void {
    if (!this.#isOver) this.#to.end();
  }

  #write(line: Buffer): void {
    if (!this.#isOver) this.#to.write(Buffer.concat([line, LINE_FEED]));
  }
}
