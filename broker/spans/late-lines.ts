import type { OnFault } from "./span-index.ts";
import type { SpanRecord } from "./trace.ts";

/** How often what could not be written is tried again. */
const AGAIN_MS = 1000;

/** Each is a kilobyte or two. */
const MAX_LATE = 10_000;

/**
 * Last lines of commands on their way into the trace. A command can fill the disk, and has run all the same: its line
 * waits here until there is room. If the broker dies before, the next one closes the span as `lost`.
 */
export class LateLines {
  readonly #write: (line: SpanRecord) => void;
  readonly #onFault: OnFault;
  readonly #late: SpanRecord[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(write: (line: SpanRecord) => void, onFault: OnFault) {
    this.#write = write;
    this.#onFault = onFault;
  }

  /** Writes a line, or keeps it when the kernel refuses. Throws what is no refusal of the kernel, and when too many wait. */
  add(line: SpanRecord): void {
    try {
      this.#write(line);
    } catch (error) {
      if (!isRefusal(error) || this.#late.length >= MAX_LATE) throw error;
      this.#onFault(`The last line of ${line.span_id} waits for room`, error);
      this.#late.push(line);
      this.#schedule();
    }
  }

  /** Tries a last time. */
  end(): void {
    clearTimeout(this.#timer);
    this.#again();
    clearTimeout(this.#timer);
  }

  #schedule(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#again();
    }, AGAIN_MS);
    this.#timer.unref();
  }

  #again(): void {
    try {
      for (let line = this.#late[0]; line !== undefined; line = this.#late[0]) {
        this.#write(line);
        this.#late.shift();
      }
    } catch (error) {
      this.#onFault(`${this.#late.length} last lines of commands wait for room`, error);
      this.#schedule();
    }
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof Error && "syscall" in error;
}
