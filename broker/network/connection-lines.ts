import type { SpanRecord } from "../spans/trace.ts";

/** How often what could not be written is tried again. */
const AGAIN_MS = 1000;

/** Each is a kilobyte or two. Of one more, nothing is left but its bytes, which stay reserved. */
const MAX_LATE = 10_000;

export type ConnectionLinesOptions = {
  /** Throws when the trace cannot be written. */
  readonly write: (line: SpanRecord) => void;
  readonly onFault: (error: unknown) => void;
};

/**
 * Lines of connections on their way into the trace. A command can fill the disk: what it sent then must not count as nothing.
 * Until a line is written, its bytes are reserved.
 */
export class ConnectionLines {
  readonly #options: ConnectionLinesOptions;
  readonly #late: SpanRecord[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ConnectionLinesOptions) {
    this.#options = options;
  }

  /** Writes a line, or keeps it until there is room. Never throws. */
  add(line: SpanRecord): void {
    if (this.#late.length >= MAX_LATE)
      return this.#options.onFault(
        new Error(`${MAX_LATE} lines of connections wait: ${line.span_id} has none`),
      );
    this.#late.push(line);
    if (this.#timer === undefined) this.#write();
  }

  /** Tries a last time. */
  end(): void {
    clearTimeout(this.#timer);
    this.#write();
    clearTimeout(this.#timer);
  }

  /** In their order: the first that is not taken keeps the others waiting. */
  #write(): void {
    this.#timer = undefined;
    try {
      for (let line = this.#late[0]; line !== undefined; line = this.#late[0]) {
        this.#options.write(line);
        this.#late.shift();
      }
    } catch (error) {
      this.#options.onFault(error);
      this.#timer = setTimeout(() => this.#write(), AGAIN_MS);
      this.#timer.unref();
    }
  }
}
