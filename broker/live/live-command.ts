import { randomBytes } from "node:crypto";
import { INPUT_WINDOW, type CommandRun, type LiveInput, type TerminalSize } from "../../world/backend.ts";
import type { LineJudge, Live, LiveStart } from "../model/live.ts";
import type { Outcome } from "../model/outcome.ts";
import { LastOutput } from "./last-output.ts";
import { Merged } from "./merged.ts";

/** Longest INPUT frame: an input is cut into pieces, so that other frames of the world get their turns. */
const PIECE = 64 * 1024;

/** A program at a terminal reads one or two ends of input; what a flood sends beyond has no reader. */
const MOST_ENDS = 64;

/** The side of whoever looks at a command and types for it. */
export type LiveClient = {
  readonly started: (start: LiveStart) => void;
  /** Takes output; `bytes` are valid only during the call. `taken` is called when the client can take more, or has left. */
  readonly output: (stream: "stdout" | "stderr", bytes: Uint8Array, taken: () => void) => void;
  /** The command has taken input. */
  readonly inputTaken: (bytes: number) => void;
  /** A job was stopped, by Ctrl-Z at its terminal; the client continues it with SIGCONT. */
  readonly stopped: (signal: string) => void;
  /** True: send no more input, until false. */
  readonly pause: (isPaused: boolean) => void;
  /** A question waits for a person before the command, or a program that it starts, goes on. */
  readonly asked: (approval: string) => void;
  readonly ended: (outcome: Outcome) => void;
};

export type LiveOptions = {
  /** Undefined: pipes. */
  readonly terminal: TerminalSize | undefined;
  /** Whether the client stops with the command: only a shell's job can be continued. */
  readonly isJob?: boolean;
  /** Whether the client sends input; a terminal always has input. */
  readonly hasInput: boolean;
  readonly isShell?: boolean;
  /** Whether a person started it, on the operator's socket. */
  readonly isPersons?: boolean;
  /** Whether the command ends or goes on when its client leaves. */
  readonly onDisconnect: "kill" | "detach";
};

/** A command of `/v1/stream`: passes input and output between one client at a time and the command. */
export class LiveCommand implements Live {
  readonly input: LiveInput | undefined;
  readonly promptWord: string | undefined;
  readonly #options: LiveOptions;
  readonly #onStarted: (span: string, command: LiveCommand) => void;
  readonly #leaving = new AbortController();
  readonly #last: LastOutput | undefined;
  #client: LiveClient | undefined;
  #start: LiveStart | undefined;
  #lines: LineJudge | undefined;
  #run: CommandRun | undefined;
  #outcome: Outcome | undefined;
  /** Input not yet sent to the command. */
  #waiting: Uint8Array[] = [];
  #sent = 0;
  #isInputOver = false;
  #isPaused = false;
  #hasInput = false;
  #signal: NodeJS.Signals | undefined;
  #size: TerminalSize | undefined;
  readonly #merged = new Merged();
  /** Ends of input at a terminal, one after the other. */
  #ends = 0;

  /** @param onStarted called with the span once the command's start is on record. */
  constructor(
    options: LiveOptions,
    client: LiveClient,
    onStarted: (span: string, command: LiveCommand) => void,
  ) {
    this.#options = options;
    this.#onStarted = onStarted;
    this.#client = client;
    this.promptWord = options.isShell === true ? randomBytes(16).toString("hex") : undefined;
    this.#last = options.onDisconnect === "detach" ? new LastOutput() : undefined;
    const hasInput = options.hasInput || options.terminal !== undefined;
    this.input = hasInput
      ? {
          terminal: options.terminal,
          onTaken: (bytes) => this.#onTaken(bytes),
          ...(options.isJob === true ? { onStopped: (signal) => this.#client?.stopped(signal) } : {}),
        }
      : undefined;
  }

  /** Aborts when the client has left and the command must end. */
  get signal(): AbortSignal {
    return this.#leaving.signal;
  }

  get span(): string | undefined {
    return this.#start?.span_id;
  }

  get agent(): string | null {
    return this.#start?.agent_id ?? null;
  }

  get isPersons(): boolean {
    return this.#options.isPersons === true;
  }

  get isDetachable(): boolean {
    return this.#options.onDisconnect === "detach";
  }

  get isAttached(): boolean {
    return this.#client !== undefined;
  }

  get outcome(): Outcome | undefined {
    return this.#outcome;
  }

  get hasUnkeptInput(): boolean {
    return this.#hasInput || this.#options.terminal !== undefined;
  }

  /** Judges lines; undefined before the start, and for a command that is no shell. */
  get lines(): LineJudge | undefined {
    return this.#lines;
  }

  readonly started = (start: LiveStart, lines?: LineJudge): void => {
    this.#start = start;
    this.#lines = lines;
    this.#onStarted(start.span_id, this);
    this.#client?.started(start);
  };

  readonly begin = (run: CommandRun): void => {
    this.#run = run;
    if (this.#size !== undefined) run.resize(this.#size);
    if (this.#signal !== undefined) run.interrupt(this.#signal);
    this.#send();
  };

  readonly output = (stream: "stdout" | "stderr", bytes: Uint8Array, taken: () => void): void => {
    this.#last?.push(stream, bytes);
    if (this.#client === undefined) taken();
    else this.#client.output(stream, bytes, taken);
  };

  /** Tells the client of a question; a client that attaches later lists those that wait. */
  asked(approval: string): void {
    this.#client?.asked(approval);
  }

  /** Tells the client how the command ended. */
  end(outcome: Outcome): void {
    this.#outcome = outcome;
    this.#run = undefined;
    this.#waiting = [];
    this.#client?.ended(outcome);
  }

  /** Input of the client; what comes after its end, or without an input, is dropped. */
  type(bytes: Uint8Array): void {
    if (bytes.length === 0 || this.#isInputOver || this.input === undefined || this.#outcome !== undefined)
      return;
    this.#hasInput = true;
    this.#ends = 0;
    this.#waiting.push(bytes);
    this.#send();
  }

  endInput(): void {
    if (this.#isInputOver || this.input === undefined || this.#ends === MOST_ENDS) return;
    this.#ends += 1;
    // A terminal has no end: after this one more may be typed.
    this.#isInputOver = this.#options.terminal === undefined;
    this.#waiting.push(END_OF_INPUT);
    this.#send();
  }

  resize(size: TerminalSize): void {
    this.#size = size;
    this.#merged.send("size", () => this.#run?.resize(size));
  }

  interrupt(name: NodeJS.Signals): void {
    this.#signal = name;
    this.#merged.send(name, () => this.#run?.interrupt(name));
  }

  /** The client's connection is closed. */
  leave(client: LiveClient): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    const hasEnded = this.#outcome !== undefined;
    if (this.#options.onDisconnect === "kill" && !hasEnded)
      this.#leaving.abort(new Error("The client went away"));
  }

  /** Gives a detached command a new client: the last output, then whatever follows. False: it has a client. */
  attach(client: LiveClient): boolean {
    if (this.#client !== undefined || this.#start === undefined) return false;
    this.#client = client;
    client.started(this.#start);
    for (const { stream, bytes } of this.#last?.parts() ?? []) client.output(stream, bytes, () => {});
    if (this.#isPaused) client.pause(true);
    if (this.#outcome !== undefined) client.ended(this.#outcome);
    return true;
  }

  #onTaken(bytes: number): void {
    this.#sent = Math.max(0, this.#sent - bytes);
    this.#client?.inputTaken(bytes);
    this.#send();
  }

  /** Sends as much input as the command's window allows, and stops the client while some has to wait. */
  #send(): void {
    for (
      let next = this.#waiting[0];
      next !== undefined && this.#run !== undefined;
      next = this.#waiting[0]
    ) {
      if (next === END_OF_INPUT) this.#run.endInput();
      else if (this.#sent >= INPUT_WINDOW) break;
      else if (this.#sendPiece(this.#run, next)) continue;
      this.#waiting.shift();
    }
    const isPaused = this.#waiting.length > 0;
    if (isPaused !== this.#isPaused) this.#client?.pause(isPaused);
    this.#isPaused = isPaused;
  }

  /** Sends the beginning of some bytes; true when a rest was put back. */
  #sendPiece(run: CommandRun, bytes: Uint8Array): boolean {
    const piece = bytes.subarray(0, Math.min(PIECE, INPUT_WINDOW - this.#sent));
    this.#sent += piece.length;
    run.input(piece);
    if (piece.length === bytes.length) return false;
    this.#waiting[0] = bytes.subarray(piece.length);
    return true;
  }
}

const END_OF_INPUT = new Uint8Array(0);
