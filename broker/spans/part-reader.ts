import { closeSync, openSync, readSync } from "node:fs";
import { partPath } from "./trace-parts.ts";

type Bytes = { readonly file: number; readonly offset: number; readonly length: number };

/** Files that are open for reading at once. */
const MAX_OPEN = 32;

/** Reads lines of files that are written no more, and keeps those open that were read last. */
export class PartReader {
  readonly #live: string;
  readonly #open = new Map<number, number>();

  constructor(live: string) {
    this.#live = live;
  }

  /** Undefined when the file is gone or ends before. */
  read(bytes: Bytes): string | undefined {
    const handle = this.#handle(bytes.file);
    return handle === undefined ? undefined : this.readFrom(handle, bytes);
  }

  readFrom(handle: number, { offset, length }: Bytes): string | undefined {
    const bytes = Buffer.allocUnsafe(length);
    for (let done = 0; done < length; ) {
      const count = readSync(handle, bytes, done, length - done, offset + done);
      if (count === 0) return undefined;
      done += count;
    }
    return bytes.toString("utf8");
  }

  /** Takes over the handle of a file that was the live one. */
  keep(first: number, handle: number): void {
    this.forget(first);
    this.#open.set(first, handle);
  }

  /** While it is kept open. */
  handleOf(first: number): number | undefined {
    return this.#open.get(first);
  }

  forget(first: number): void {
    const handle = this.#open.get(first);
    if (handle === undefined) return;
    this.#open.delete(first);
    closeSync(handle);
  }

  close(): void {
    for (const first of [...this.#open.keys()]) this.forget(first);
  }

  #handle(first: number): number | undefined {
    const known = this.#open.get(first);
    if (known !== undefined) {
      this.#open.delete(first);
      this.#open.set(first, known);
      return known;
    }
    const handle = openOrNothing(partPath(this.#live, first));
    if (handle === undefined) return undefined;
    this.#open.set(first, handle);
    const [oldest] = this.#open.keys();
    if (this.#open.size > MAX_OPEN && oldest !== undefined) this.forget(oldest);
    return handle;
  }
}

function openOrNothing(path: string): number | undefined {
  try {
    return openSync(path, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
