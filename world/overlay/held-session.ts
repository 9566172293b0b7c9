/** One process of `substrate-init held`: takes one request at a time until disposed. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";

/** The native part's answer: a word, followed by bytes. */
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
    // Detached: an interrupt at the terminal goes to the broker alone, and must not stop an apply half-way.
    this.#child = spawn(init, ["held"], {
      detached: true,
      stdio: ["pipe", "pipe", "ignore"],
      env: {},
      cwd: "/",
    });
    this.#child.stdin.on("error", () => {
      // The process has ended, ignoring: reported below.
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

  /**
   * Sends a request. `signal` kills the process: do not pass one to a request that must complete. Throws if the process ends
   * without an answer.
   */
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

  /** As `ask`, for requests answered by `ok`; throws any other answer. */
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

/** Splits fields terminated by NUL; one letter per byte. */
export function fieldsOf(bytes: Buffer): string[] {
  const fields = bytes.toString("latin1").split("\0");
  fields.pop();
  return fields;
}
