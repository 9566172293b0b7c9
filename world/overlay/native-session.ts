/** One process of `substrate-init` that answers requests, one at a time (world/native/changes/answers.h). */
import { type ChildProcess, spawn } from "node:child_process";

import { HeldUnread } from "../model/held.ts";
import { WorldUnavailable } from "../model/unavailable.ts";

/** The native part's answer: a word, followed by bytes. */
export type Answer = { readonly word: string; readonly rest: Buffer };

const HEAD = 4;

/** Thrown when the process ends before its answer. */
export class SessionEnded extends WorldUnavailable {
  constructor(cause: string) {
    super(
      cause,
      "Something on this machine ended a part of the broker, as the kernel does without memory. Try again",
    );
  }
}

export class NativeSession implements AsyncDisposable {
  /** Resolves with the cause when the process has ended. */
  readonly ended: Promise<string>;
  /** Without pipes when the broker has no descriptors left: `ended` says so then. */
  readonly #child: ChildProcess;
  readonly #answers: Buffer[] = [];
  #chunks: Buffer[] = [];
  #got = 0;
  #cause: string | undefined;
  #wake: () => void = () => {};

  /**
   * @param init the `substrate-init` program.
   * @param program its first argument.
   */
  constructor(init: string, program: "held" | "changes") {
    // Detached: an interrupt at the terminal goes to the broker alone, and must not stop an apply half-way.
    this.#child = spawn(init, [program], {
      detached: true,
      stdio: ["pipe", "pipe", "ignore"],
      env: {},
      cwd: "/",
    });
    this.#child.stdin?.on("error", () => {
      // The process has ended, ignoring: reported below.
    });
    this.#child.stdout?.on("data", (bytes: Buffer) => this.#take(bytes));
    this.ended = new Promise((resolve) => {
      this.#child.once("error", (error) => resolve(error.message));
      this.#child.once("close", (code, signal) =>
        resolve(`substrate-init ${program} ended with ${signal ?? code}`),
      );
    });
    void this.ended.then((cause) => {
      this.#cause = cause;
      this.#wake();
    });
  }

  get isOver(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /**
   * Sends a request with one answer. `signal` kills the process: do not pass one to a request that must complete. Throws if the
   * process ends without an answer.
   */
  async ask(fields: readonly string[], signal?: AbortSignal): Promise<Answer> {
    signal?.throwIfAborted();
    const abort = (): void => this.kill();
    signal?.addEventListener("abort", abort, { once: true });
    try {
      this.send(fields);
      return await this.next();
    } finally {
      signal?.removeEventListener("abort", abort);
      signal?.throwIfAborted();
    }
  }

  /** As `ask`, for requests answered by `ok`; throws any other answer, {@link HeldUnread} for `large`. */
  async demand(fields: readonly string[], signal?: AbortSignal): Promise<Buffer> {
    const { word, rest } = await this.ask(fields, signal);
    if (word === "ok") return rest;
    if (word === "large")
      throw new HeldUnread("HELD_TOO_LARGE", "The list of the held changes is longer than 64 MiB");
    const [what = "", why = ""] = fieldsOf(rest);
    throw new Error(`Cannot read '${what}': ${why}`);
  }

  send(fields: readonly string[]): void {
    const payload = Buffer.from(`${fields.join("\0")}\0`, "latin1");
    const head = Buffer.alloc(HEAD);
    head.writeUInt32LE(payload.length);
    this.#child.stdin?.write(Buffer.concat([head, payload]));
  }

  /** Returns the next answer; the pipe is paused until then. One caller at a time. Throws {@link SessionEnded}. */
  async next(): Promise<Answer> {
    for (;;) {
      const answer = this.#answers.shift();
      if (answer !== undefined) return answerOf(answer);
      if (this.#cause !== undefined) throw new SessionEnded(this.#cause);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        this.#child.stdout?.resume();
      });
    }
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  /** Sets whether the process keeps the broker alive. */
  hold(holds: boolean): void {
    const handles: readonly (object | null)[] = [this.#child, this.#child.stdin, this.#child.stdout];
    for (const handle of handles) {
      const { ref, unref } = (handle ?? {}) as { ref?: () => void; unref?: () => void };
      (holds ? ref : unref)?.call(handle);
    }
  }

  /** Lets the process end after its present request. */
  end(): void {
    this.#child.stdin?.end();
    this.#child.stdout?.resume();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.end();
    await this.ended;
  }

  #take(bytes: Buffer): void {
    this.#chunks.push(bytes);
    this.#got += bytes.length;
    while (this.#got >= HEAD) {
      if ((this.#chunks[0]?.length ?? 0) < HEAD) this.#chunks = [Buffer.concat(this.#chunks)];
      const end = HEAD + (this.#chunks[0]?.readUInt32LE() ?? 0);
      if (this.#got < end) break;
      const whole = Buffer.concat(this.#chunks);
      this.#answers.push(whole.subarray(HEAD, end));
      this.#chunks = [whole.subarray(end)];
      this.#got -= end;
    }
    if (this.#answers.length === 0) return;
    this.#child.stdout?.pause();
    this.#wake();
  }
}

function answerOf(answer: Buffer): Answer {
  const end = answer.indexOf(0);
  if (end < 0) throw new Error("substrate-init gave no answer");
  return { word: answer.toString("latin1", 0, end), rest: answer.subarray(end + 1) };
}

/** Splits fields terminated by NUL; one letter per byte. */
export function fieldsOf(bytes: Buffer): string[] {
  const fields = bytes.toString("latin1").split("\0");
  fields.pop();
  return fields;
}
