/** One command as a stream: standard input in, outputs out as they are written; or this terminal as the command's. */
import { fstatSync } from "node:fs";
import { constants } from "node:os";
import { isatty } from "node:tty";
import type { Answer } from "../../client/client.ts";
import { Stream } from "../../client/stream.ts";
import { lendsBy, onEnding, rawMode, sizeOf } from "../terminal/raw-mode.ts";
import { ScreenState } from "../terminal/screen-reset.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** Input that may be sent and not yet taken by the command, in bytes; more would stop the connection, and Ctrl-C with it. */
const INPUT_WINDOW = 256 * 1024;

/** Longest message of input. */
const PIECE = 64 * 1024;

/** Ctrl-Z as a byte, and as kitty's and xterm's reports of keys have it. Modifiers are bits, plus one; 4 is Ctrl. */
// oxlint-disable-next-line no-control-regex -- keys are what is looked for
const SUSPENDS = /\x1a|\x1b\[122[:\d]*;(\d{1,3})[:\d]*u|\x1b\[27;(\d{1,3});122~/g;

function suspends(typed: Buffer): boolean {
  const found = [...typed.toString("latin1").matchAll(SUSPENDS)];
  return found.some(([keys, kitty, xterm]) => keys === "\x1a" || ((Number(kitty ?? xterm) - 1) & 4) !== 0);
}

/** A program that handles Ctrl-Z itself may tidy up first. */
const SUSPEND_MS = 10_000;

/** Pause before a program that stopped itself goes on: one that stops again and again takes time from itself alone. */
const PAUSE_MS = 100;

/** How long a program has another size after a question. */
const REPAINT_MS = 80;

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** 128 + SIGPIPE: a program that writes to a closed pipe ends by this signal. */
const BROKEN_PIPE = 128 + constants.signals.SIGPIPE;

export type StreamCall = {
  readonly socket: string;
  /** `/v1/stream`, or `/v1/stream/SPAN` to attach. */
  readonly path: string;
  /** The first message; undefined when attaching. */
  readonly body: object | undefined;
  /** Whether standard input is passed on. */
  readonly hasInput: boolean;
  readonly requestId?: string | undefined;
  /** Sees what is typed at a terminal; true: the client detaches. */
  readonly detaches?: ((typed: Buffer) => boolean) | undefined;
  /** Called when the command starts; true: the client detaches. */
  readonly onStarted?: ((start: { readonly span_id: string }) => boolean) | undefined;
};

/**
 * The field that asks for one pipe when descriptors 1 and 2 are the same open file, pipe or terminal, as after `2>&1`: over two pipes the
 * order of what a command writes would be lost. Also for a file that was opened twice, where nobody counts on the order.
 */
export function togetherField(): { readonly outputs?: "together" } {
  const [out, error] = [fstatSync(1, { bigint: true }), fstatSync(2, { bigint: true })];
  // Sockets have no number on macOS.
  return out.ino !== 0n && out.dev === error.dev && out.ino === error.ino ? { outputs: "together" } : {};
}

/** What became of a stream: the last message or the refusal; or the exit code when this side ended it. */
export async function streamed(terminal: Terminal, call: StreamCall): Promise<Answer | number> {
  return await new StreamedCall(terminal, call).ended();
}

class StreamedCall {
  readonly #terminal: Terminal;
  readonly #call: StreamCall;
  readonly #stream: Stream;
  readonly #pump: InputPump;
  #left: number | undefined;
  #isRunning = false;
  #hasTerminal = false;
  #wasAsked = false;
  readonly #undo: (() => void)[] = [];
  readonly #screen = new ScreenState();
  /** When Ctrl-Z was typed. */
  #suspendedAt = Number.NEGATIVE_INFINITY;
  #toldGoesOn = false;
  /** Output that waits for the end of a question. */
  #held: (() => void)[] | undefined;
  /** Gives the terminal back for a while; returns how to take it again. */
  #lend: () => () => void = () => () => {};

  constructor(terminal: Terminal, call: StreamCall) {
    this.#terminal = terminal;
    this.#call = call;
    this.#pump = new InputPump(terminal.stdin, (bytes) => this.#type(bytes));
    const events = {
      started: (start: object) => this.#onStarted(start as { pty?: boolean; span_id: string }),
      output: (name: "stdout" | "stderr", bytes: Buffer, taken: () => void) =>
        this.#print(name === "stdout" ? terminal.out : terminal.err, bytes, taken),
      inputTaken: (bytes: number) => this.#pump.taken(bytes),
      stopped: () => this.#stop(),
    };
    this.#stream = new Stream(call.socket, call.path, call.body, events, call.requestId);
  }

  async ended(): Promise<Answer | number> {
    const onBroken = (error: NodeJS.ErrnoException): void => {
      if (error.code === "EPIPE") this.#leave(BROKEN_PIPE);
    };
    const onSignal = (name: NodeJS.Signals): void => this.#onSignal(name);
    for (const name of SIGNALS) process.on(name, onSignal);
    this.#terminal.out.on("error", onBroken);
    try {
      return await this.#stream.ended;
    } catch (error) {
      if (this.#left === undefined) throw error;
      return this.#left;
    } finally {
      this.#release();
      if (!this.#hasTerminal && this.#terminal.err.isTTY)
        this.#terminal.err.write(this.#screen.coloursAgain());
      // The terminal is restored first: Node cannot set the modes of an input that is destroyed.
      for (const undo of this.#undo) undo();
      this.#pump.end();
      this.#terminal.out.off("error", onBroken);
      for (const name of SIGNALS) process.off(name, onSignal);
    }
  }

  /** Input is read only now: a refused command has used none, and may be asked about and sent again. */
  #onStarted(start: { readonly pty?: boolean; readonly span_id: string }): void {
    this.#isRunning = true;
    if (this.#call.onStarted?.(start) === true) return this.#leave(0);
    this.#hasTerminal = start.pty === true;
    if (this.#hasTerminal) this.#takeOver();
    this.#undo.push(lendsBy(() => this.#lendForQuestion()));
    if (this.#call.hasInput) this.#pump.begin(() => this.#inputEnded());
  }

  /** Only an attached command is sure to have a terminal here, and one that has hung up is none: the command goes on. */
  #inputEnded(): void {
    if (this.#call.body === undefined && !isatty(0)) this.#leave(128 + constants.signals.SIGHUP);
    else this.#stream.send({ type: "stdin_eof" });
  }

  /** Makes this terminal the command's. Its size may have changed since the call, or be another client's. */
  #takeOver(): void {
    const { stdin, out } = this.#terminal;
    const resize = (): void => {
      if (out.isTTY) this.#stream.send({ type: "resize", ...sizeOf(out) });
    };
    out.on("resize", resize);
    resize();
    const leave = (name: NodeJS.Signals): void => this.#leave(128 + constants.signals[name]);
    let restore = rawMode(stdin);
    this.#lend = (): (() => void) => {
      restore();
      this.#pump.isLent = true;
      return () => {
        restore = rawMode(stdin);
        this.#pump.isLent = false;
        stdin.resume();
        resize();
      };
    };
    this.#undo.push(
      () => {
        // A terminal that has hung up takes no bytes.
        if (this.#left !== 128 + constants.signals.SIGHUP) out.write(this.#screen.forShell());
        restore();
      },
      onEnding(leave),
      () => out.off("resize", resize),
    );
  }

  #print(out: NodeJS.WriteStream, bytes: Buffer, taken: () => void): void {
    const print = (): void => {
      if (this.#terminal.err.isTTY) this.#screen.seen(bytes);
      // A failed write is told by the stream's 'error'.
      out.write(bytes, () => taken());
    };
    if (this.#held === undefined) print();
    else this.#held.push(print);
  }

  /** What a command prints beside a question could pass for another question. */
  #lendForQuestion(): () => void {
    this.#held ??= [];
    const takeAgain = this.#lend();
    this.#terminal.err.write(this.#screen.forQuestion());
    return () => {
      takeAgain();
      this.#release();
      // Programs repaint only when the size changes.
      const { out } = this.#terminal;
      if (!this.#hasTerminal || !out.isTTY) return;
      const { cols, rows } = sizeOf(out);
      this.#stream.send({ type: "resize", cols, rows: rows > 1 ? rows - 1 : 2 });
      setTimeout(() => this.#stream.send({ type: "resize", cols, rows }), REPAINT_MS).unref();
    };
  }

  #release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const print of held) print();
  }

  /**
   * Stops this job with the command where the person typed Ctrl-Z, and continues the command when a shell has continued this one. A
   * program that stops itself goes on: else the host's shell would read what the person types to the program.
   */
  #stop(): void {
    const isTyped = performance.now() - this.#suspendedAt <= SUSPEND_MS;
    this.#suspendedAt = Number.NEGATIVE_INFINITY;
    const goOn = (): void => this.#stream.send({ type: "signal", signal: "SIGCONT" });
    if (!isTyped) {
      if (!this.#toldGoesOn)
        this.#terminal.err.write(
          "\r\nsubstrate: the program stopped itself; it goes on, because nobody typed Ctrl-Z here\r\n",
        );
      this.#toldGoesOn = true;
      setTimeout(goOn, PAUSE_MS).unref();
      return;
    }
    const takeAgain = this.#lend();
    this.#terminal.out.write(this.#screen.forShell());
    process.kill(0, "SIGTSTP");
    takeAgain();
    goOn();
  }

  #type(bytes: Buffer): void {
    if (this.#call.detaches?.(bytes) === true) return this.#leave(0);
    if (suspends(bytes)) this.#suspendedAt = performance.now();
    this.#stream.type(bytes);
  }

  /**
   * The first signal is the command's. Before the command runs, and from the second signal on, this process ends; and when its terminal
   * goes, an attached command goes on.
   */
  #onSignal(name: NodeJS.Signals): void {
    const isOwn = this.#call.body === undefined && name !== "SIGINT";
    if (isOwn || this.#wasAsked || !this.#isRunning) this.#leave(128 + constants.signals[name]);
    else this.#stream.send({ type: "signal", signal: name });
    this.#wasAsked = true;
  }

  #leave(code: number): void {
    this.#left ??= code;
    this.#stream.close();
  }
}

/** Reads standard input as fast as the command takes it. */
class InputPump {
  /** Whether what is typed answers a question. */
  isLent = false;
  readonly #from: NodeJS.ReadStream;
  readonly #send: (bytes: Buffer) => void;
  #untaken = 0;
  #hasBegun = false;

  constructor(from: NodeJS.ReadStream, send: (bytes: Buffer) => void) {
    this.#from = from;
    this.#send = send;
  }

  begin(onEnd: () => void): void {
    this.#hasBegun = true;
    this.#from.on("data", (bytes: Buffer) => {
      if (this.isLent) return;
      for (let at = 0; at < bytes.length; at += PIECE) this.#send(bytes.subarray(at, at + PIECE));
      this.#untaken += bytes.length;
      if (this.#untaken >= INPUT_WINDOW) this.#from.pause();
    });
    this.#from.once("end", onEnd);
    this.#from.once("error", (error) => {
      process.stderr.write(`substrate: Cannot read standard input: ${error.message}\n`);
      onEnd();
    });
  }

  taken(bytes: number): void {
    this.#untaken -= bytes;
    if (this.#untaken < INPUT_WINDOW && this.#from.isPaused()) this.#from.resume();
  }

  /** Lets the process end although nobody closes its input. */
  end(): void {
    if (this.#hasBegun) this.#from.destroy();
  }
}
