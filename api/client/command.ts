/** A command whose outputs are read while it runs. */
import type {
  ExecuteReply,
  ExecuteRequest,
  StreamControl,
  StreamOptions,
} from "../../schemas/generated/types.ts";
import { failureOf, refusalOf } from "./errors.ts";
import { Stream } from "./stream.ts";

/** Input that may be sent and not yet taken by the command, in bytes; more would stop the connection, and signals with it. */
const INPUT_WINDOW = 256 * 1024;

/** Longest message of input. */
const PIECE = 64 * 1024;

export type CommandSignal = NonNullable<StreamControl["signal"]>;

/** Some bytes that the command wrote. A terminal's output is all stdout. */
export type Output = { readonly stream: "stdout" | "stderr"; readonly bytes: Uint8Array };

export type Started = Pick<ExecuteReply, "span_id" | "world_id" | "session_id" | "decision" | "isolation">;

/** The reply of an execute call, without the outputs. */
export type Exit = Omit<
  ExecuteReply,
  "stdout_b64" | "stderr_b64" | "stdout_bytes" | "stderr_bytes" | "truncated"
>;

export type StreamRequest = Partial<Pick<ExecuteRequest, "agent_id">> &
  Omit<ExecuteRequest, "agent_id" | "pty" | "stdin_b64" | "max_output_bytes" | "format" | "idempotency_key"> &
  Omit<StreamOptions, "session_shell" | "questions" | "job_control">;

type Waiting = { readonly output: Output; readonly taken: () => void };

/**
 * A running command: iterate over it for its outputs, then ask {@link Command.finished} for its end. Output that nobody reads slows the
 * command down. Leaving the iteration early ends the command, as the signal's abort and {@link Command.close} do.
 */
export class Command implements AsyncIterable<Output> {
  /** When the command runs; rejects with {@link SubstrateError} when it is refused. */
  readonly started: Promise<Started>;
  readonly #stream: Stream;
  readonly #outputs: Waiting[] = [];
  readonly #end: Promise<Exit>;
  #isOver = false;
  #isRead = false;
  #wake: () => void = () => {};
  #untaken = 0;
  #roomLeft: (() => void)[] = [];
  /** Settles when all earlier input is sent. */
  #input: Promise<void>;

  constructor(socket: string, path: string, first: object | undefined, signal?: AbortSignal) {
    signal?.throwIfAborted();
    const started = promise<Started>();
    this.started = started.promise;
    this.#stream = new Stream(socket, path, first, {
      started: (message) => started.resolve(message as Started),
      output: (stream, bytes, taken) => this.#take({ output: { stream, bytes }, taken }),
      inputTaken: (bytes) => this.#inputTaken(bytes),
    });
    const abort = (): void => this.#stream.close();
    signal?.addEventListener("abort", abort, { once: true });
    this.#end = this.#ended(signal).finally(() => {
      signal?.removeEventListener("abort", abort);
      this.#isOver = true;
      this.#inputTaken(this.#untaken);
      this.#wake();
    });
    this.#end.catch(started.reject);
    // Both may be asked for late, or never.
    this.#input = this.started.then(() => {});
    this.#input.catch(() => {});
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Output, void, void> {
    if (this.#isRead) throw new Error("The outputs of a command can be read once");
    this.#isRead = true;
    try {
      for (;;) {
        for (let next = this.#outputs.shift(); next !== undefined; next = this.#outputs.shift()) {
          next.taken();
          yield next.output;
        }
        if (this.#isOver) break;
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
      await this.#end;
    } finally {
      this.close();
    }
  }

  /** How the command ended, whatever its exit code. Discards the outputs unless they are being read. Rejects as the calls do. */
  async finished(): Promise<Exit> {
    if (!this.#isRead) for await (const _output of this);
    return await this.#end;
  }

  /**
   * Sends input; the request must have `stdin: true` or `pty: true`. Resolves when more may be sent: a command that waits for its output
   * to be read takes none. Input after the command's end is dropped.
   */
  write(input: string | Uint8Array): Promise<void> {
    const bytes = Buffer.from(input as Uint8Array);
    const written = this.#input.then(() => this.#send(bytes));
    this.#input = written;
    // The caller may leave it to the next one to hear of a refusal.
    written.catch(() => {});
    return written;
  }

  /** Ends the input, after what was written. */
  end(): void {
    this.#input = this.#input.then(() => this.#stream.send({ type: "stdin_eof" }));
    this.#input.catch(() => {});
  }

  resize(cols: number, rows: number): void {
    this.#tell({ type: "resize", cols, rows });
  }

  /** Sends a signal to the terminal's foreground processes; without a terminal, to the whole command. */
  signal(signal: CommandSignal): void {
    this.#tell({ type: "signal", signal });
  }

  /** Ends the command; with `on_disconnect: "detach"`, leaves it running. */
  close(): void {
    this.#stream.close();
  }

  async #ended(signal: AbortSignal | undefined): Promise<Exit> {
    const answer = await this.#stream.ended.catch((error: unknown) => {
      throw failureOf(error, signal);
    });
    if (answer.status === 200) return answer.document as Exit;
    throw refusalOf(answer);
  }

  async #send(bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length && !this.#isOver; at += PIECE) {
      while (this.#untaken >= INPUT_WINDOW && !this.#isOver) await this.#room();
      const piece = bytes.subarray(at, at + PIECE);
      this.#untaken += piece.length;
      this.#stream.type(piece);
    }
  }

  /** Before the start the connection may not be open yet. */
  #tell(message: object): void {
    this.started.then(
      () => this.#stream.send(message),
      () => {},
    );
  }

  #take(waiting: Waiting): void {
    this.#outputs.push(waiting);
    this.#wake();
  }

  #inputTaken(bytes: number): void {
    this.#untaken -= bytes;
    for (const wake of this.#roomLeft.splice(0)) wake();
  }

  #room(): Promise<void> {
    return new Promise((resolve) => this.#roomLeft.push(resolve));
  }
}

type Deferred<T> = {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
};

/** `Promise.withResolvers()`, which Node 20 lacks. */
function promise<T>(): Deferred<T> {
  let resolve: Deferred<T>["resolve"] = () => {};
  let reject: Deferred<T>["reject"] = () => {};
  const made = new Promise<T>((done, failed) => {
    resolve = done;
    reject = failed;
  });
  return { promise: made, resolve, reject };
}

/** The file mode creation mask of a command whose caller sends none. */
const USUAL_UMASK = 0o022;

/** This process's own mask, where it is not {@link USUAL_UMASK}. */
export function umaskField(): { readonly umask?: string } {
  const mask = process.umask();
  return mask === USUAL_UMASK ? {} : { umask: mask.toString(8).padStart(4, "0") };
}
