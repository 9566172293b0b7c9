/** One call of `substrate exec` as a stream: standard input in, outputs out as they are written. */
import { constants } from "node:os";
import type { Answer } from "../../client/client.ts";
import { Stream } from "../../client/stream.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** Input that may be sent and not yet taken by the command, in bytes; more would stop the connection, and Ctrl-C with it. */
const INPUT_WINDOW = 256 * 1024;

/** Longest message of input. */
const PIECE = 64 * 1024;

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** 128 + SIGPIPE: a program that writes to a closed pipe ends by this signal. */
const BROKEN_PIPE = 128 + constants.signals.SIGPIPE;

/**
 * Runs the command. Returns the last message or the refusal; or the exit code after a second signal, a signal before the start, or
 * a closed output.
 */
export async function streamed(
  terminal: Terminal,
  socket: string,
  body: object,
  hasInput: boolean,
  requestId?: string,
): Promise<Answer | number> {
  let left: number | undefined;
  let isRunning = false;
  const leave = (code: number): void => {
    left ??= code;
    stream.close();
  };
  const pump = hasInput ? new InputPump(terminal.stdin, (bytes) => stream.type(bytes)) : undefined;
  const stream: Stream = new Stream(
    socket,
    "/v1/stream",
    body,
    {
      started: () => {
        isRunning = true;
        // Not before: a refused command has used no input, and may be asked about and sent again.
        pump?.begin(() => stream.send({ type: "stdin_eof" }));
      },
      output: (name, bytes, taken) => {
        const out = name === "stdout" ? terminal.out : terminal.err;
        if (out.write(bytes)) taken();
        else out.once("drain", taken);
      },
      inputTaken: (bytes) => pump?.taken(bytes),
    },
    requestId,
  );
  let asked = false;
  const onSignal = (name: NodeJS.Signals): void => {
    if (asked || !isRunning) leave(128 + constants.signals[name]);
    else stream.send({ type: "signal", signal: name });
    asked = true;
  };
  const onBroken = (error: NodeJS.ErrnoException): void => {
    if (error.code === "EPIPE") leave(BROKEN_PIPE);
  };
  for (const name of SIGNALS) process.on(name, onSignal);
  terminal.out.on("error", onBroken);
  try {
    return await stream.ended;
  } catch (error) {
    if (left === undefined) throw error;
    return left;
  } finally {
    pump?.end();
    terminal.out.off("error", onBroken);
    for (const name of SIGNALS) process.off(name, onSignal);
  }
}

/** Reads standard input as fast as the command takes it. */
class InputPump {
  readonly #from: NodeJS.ReadStream;
  readonly #send: (bytes: Buffer) => void;
  #untaken = 0;

  constructor(from: NodeJS.ReadStream, send: (bytes: Buffer) => void) {
    this.#from = from;
    this.#send = send;
  }

  begin(onEnd: () => void): void {
    this.#from.on("data", (bytes: Buffer) => {
      for (let at = 0; at < bytes.length; at += PIECE) this.#send(bytes.subarray(at, at + PIECE));
      this.#untaken += bytes.length;
      if (this.#untaken >= INPUT_WINDOW) this.#from.pause();
    });
    this.#from.once("end", onEnd);
    this.#from.once("error", onEnd);
  }

  taken(bytes: number): void {
    this.#untaken -= bytes;
    if (this.#untaken < INPUT_WINDOW && this.#from.isPaused()) this.#from.resume();
  }

  /** Lets the process end although nobody closes its input. */
  end(): void {
    this.#from.destroy();
  }
}
