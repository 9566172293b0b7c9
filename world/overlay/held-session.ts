/** One run of `substrate-init held`: a request at a time, until it is disposed of. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";

/** What the native part answers: a word, and the bytes behind it. */
export type Answer = { readonly word: string; readonly rest: Buffer };

const HEAD = 4;

export class HeldSession implements AsyncDisposable {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #ended: Promise<string>;
  #chunks: Buffer[] = [];
  #got = 0;
  #waiting: ((answer: Buffer | string) => void) | undefined;

  /** @param init the `substrate-init` program. */
  constructor(init: string) {
    // In a session of its own: an interrupt at the terminal is the broker's to deal with, and no reason to stop half-way.
    this.#child = spawn(init, ["held"], {
      detached: true,
      stdio: ["pipe", "pipe", "ignore"],
      env: {},
      cwd: "/",
    });
    this.#child.stdin.on("error", () => {
      // It has ended, ignoring: its end is told below.
    });
    this.#child.stdout.on("data", (bytes: Buffer) => this.#take(bytes));
    this.#ended = new Promise((resolve) => {
      this.#child.once("error", (error) => resolve(error.message));
      this.#child.once("close", (code, signal) =>
        resolve(`substrate-init held ended with ${signal ?? code}`),
      );
    });
    void this.#ended.then((cause) => this.#settle(cause));
  }

  /** `signal` ends the process: not for what must not stop half-way. Throws when it ends before it answers. */
  async ask(fields: readonly string[], signal?: AbortSignal): Promise<Answer> {
    signal?.throwIfAborted();
    const abort = (): void => void this.#child.kill("SIGKILL");
    signal?.addEventListener("abort", abort, { once: true });
    try {
      const answer = await this.#exchange(fields);
      signal?.throwIfAborted();
      if (typeof answer === "string") throw new Error(answer);
      const end = answer.indexOf(0);
      if (end < 0) throw new Error("substrate-init held gave no answer");
      return { word: answer.toString("latin1", 0, end), rest: answer.subarray(end + 1) };
    } finally {
      signal?.removeEventListener("abort", abort);
    }
  }

  /** As `ask`, for what answers `ok`; throws what else it says. */
  async demand(fields: readonly string[], signal?: AbortSignal): Promise<Buffer> {
    const { word, rest } = await this.ask(fields, signal);
    if (word === "ok") return rest;
    const [what = "", why = ""] = fieldsOf(rest);
    throw new Error(`Cannot read '${what}': ${why}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.stdin.end();
    await this.#ended;
  }

  #exchange(fields: readonly string[]): Promise<Buffer | string> {
    const payload = Buffer.from(`${fields.join("\0")}\0`, "latin1");
    const head = Buffer.alloc(HEAD);
    head.writeUInt32LE(payload.length);
    return new Promise((resolve) => {
      this.#waiting = resolve;
      void this.#ended.then(resolve);
      this.#child.stdin.write(Buffer.concat([head, payload]));
    });
  }

  #take(bytes: Buffer): void {
    this.#chunks.push(bytes);
    this.#got += bytes.length;
    if (this.#got < HEAD) return;
    const first = this.#chunks[0];
    if (first !== undefined && first.length < HEAD) this.#chunks = [Buffer.concat(this.#chunks)];
    const length = this.#chunks[0]?.readUInt32LE() ?? 0;
    if (this.#got < HEAD + length) return;
    const whole = Buffer.concat(this.#chunks);
    this.#chunks = [];
    this.#got = 0;
    this.#settle(whole.subarray(HEAD, HEAD + length));
  }

  #settle(answer: Buffer | string): void {
    this.#waiting?.(answer);
    this.#waiting = undefined;
  }
}

/** Fields that end with NUL; one letter for each byte. */
export function fieldsOf(bytes: Buffer): string[] {
  const fields = bytes.toString("latin1").split("\0");
  fields.pop();
  return fields;
}
