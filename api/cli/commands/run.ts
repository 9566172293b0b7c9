/** Whole programs inside a world, with this terminal; and detached commands taken up again. */
import { askingHere } from "../questions/ask-here.ts";
import type { Answer } from "../../client/client.ts";
import { exitOfRefusal, wordsOf } from "../terminal/replies.ts";
import { isTerminal, sizeOf } from "../terminal/raw-mode.ts";
import { harmlessLine, printLine, type Terminal } from "../terminal/terminal.ts";
import {
  type CommandOptions,
  commandBody,
  commandSocket,
  parentSpan,
  refuseWithoutWorld,
  variable,
} from "./command-body.ts";
import { streamed, togetherField } from "./exec-stream.ts";

export type RunOptions = Omit<CommandOptions, "shell"> & {
  readonly detach?: boolean;
  readonly realHome?: boolean;
};

/** Runs a program with this terminal as its own; without a terminal, with pipes. */
export async function runCommand(
  terminal: Terminal,
  words: readonly string[],
  options: RunOptions,
): Promise<number> {
  refuseWithoutWorld(terminal, "run");
  // Whoever attaches later has a terminal; the client that starts a program may have none.
  const pty = options.detach === true || isTerminal(terminal);
  const term = variable(terminal, "TERM");
  const body = {
    ...programBody(terminal, words, options),
    ...parentSpan(terminal),
    no_time_limit: true,
    home: options.realHome === true ? "real" : "own",
    ...(pty ? { pty, ...sizeOf(terminal.out), ...(term === undefined ? {} : { term }) } : togetherField()),
    ...(options.detach === true ? DETACHED : { stdin: true, ...(pty ? { job_control: true } : {}) }),
  };
  const socket = commandSocket(terminal, options);
  if (options.detach === true) return await detached(terminal, socket, body);
  // A question for a person is put before the program starts; from then on the terminal is the program's.
  const asking = { body, wait: false, silent: false, inputTaken: false };
  const answer = await askingHere(terminal, asking, (sent, requestId) =>
    streamed(terminal, { socket, path: STREAM, body: sent, hasInput: true, requestId }),
  );
  return endOf(terminal, answer);
}

/** A word alone is a program, unless it has a space: then it is a shell command, as for `exec`. */
function programBody(terminal: Terminal, words: readonly string[], options: RunOptions): object {
  const [only = "", ...more] = words;
  if (more.length > 0 || /\s/.test(only)) return commandBody(terminal, words, options);
  const { cmd: _cmd, ...rest } = commandBody(terminal, words, options);
  return { ...rest, argv: [only] };
}

/** Fields of a command that goes on when its client leaves. */
export const DETACHED = { on_disconnect: "detach" } as const;

/** Starts a command, prints its span and leaves it running. */
export async function detached(terminal: Terminal, socket: string, body: object): Promise<number> {
  const answer = await streamed(terminal, {
    socket,
    path: STREAM,
    body,
    hasInput: false,
    onStarted: ({ span_id: span }) => {
      printLine(terminal, span);
      return true;
    },
  });
  return endOf(terminal, answer);
}

/** Takes a detached command up again. */
export async function attachCommand(terminal: Terminal, span: string): Promise<number> {
  const keys = new DetachKeys();
  const answer = await streamed(terminal, {
    socket: terminal.home.controlSocket,
    path: `${STREAM}/${encodeURIComponent(span)}`,
    body: undefined,
    // The end of a script's input would be the program's, which goes on when nobody looks.
    hasInput: terminal.stdin.isTTY === true,
    ...(isTerminal(terminal) ? { detaches: (typed) => keys.areIn(typed) } : {}),
  });
  return endOf(terminal, answer);
}

const STREAM = "/v1/stream";

/** Prints the refusal or the lines of an ended stream, without those `told` before; returns the exit code. */
export function endOf(
  terminal: Terminal,
  answer: Answer | number,
  told: ReadonlySet<string> = new Set(),
): number {
  if (typeof answer === "number") return answer;
  if (answer.status !== 200) {
    terminal.err.write(`substrate: ${wordsOf(answer)}\n`);
    return exitOfRefusal(answer);
  }
  const { exit, lines } = answer.document as { readonly exit: number; readonly lines: readonly string[] };
  for (const line of lines)
    if (!told.has(uncounted(line))) terminal.err.write(`substrate: ${harmlessLine(line)}\n`);
  return exit;
}

/** A sentence without how often it happened. */
export function uncounted(sentence: string): string {
  return sentence.replace(/ \(\d+ times\)$/, "");
}

/** `~.` at the beginning of a line, as in ssh. */
class DetachKeys {
  #last = "\r";

  areIn(typed: Buffer): boolean {
    const text = this.#last + typed.toString("latin1");
    this.#last = text.slice(-3);
    return /[\r\n]~\.[\r\n]?$/.test(text);
  }
}
