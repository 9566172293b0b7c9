import { fstatSync, statSync } from "node:fs";
import type { ReadStream } from "node:tty";
import { Complaint, type Terminal } from "../terminal/terminal.ts";

/** With base64 around it this fits into a request. */
const MAX_STDIN = 7 * 1024 * 1024;

/**
 * A script may hand down a pipe that nobody writes to and nobody closes. One that is silent for so long, in
 * milliseconds, is not waited for, and the person is told.
 */
const SILENCE_MS = 150;

/** Whether standard input is streamed to the command: a pipe always, a terminal only when that is asked for. */
export function readsInput({ stdin, err }: Terminal, wait: boolean): boolean {
  if (stdin.isTTY === true) return sayTerminal(err, wait);
  // An empty pipe is not the same: programs such as rg search what they take for input.
  return !isNullDevice(stdin);
}

export function isNullDevice({ fd }: NodeJS.ReadStream & { fd?: number }): boolean {
  if (fd === undefined) return false;
  return fstatSync(fd).isCharacterDevice() && fstatSync(fd).rdev === statSync("/dev/null").rdev;
}

/** What is piped in becomes the command's input; what is typed at a terminal only when that is asked for. */
export async function stdinField(terminal: Terminal, wait: boolean): Promise<{ stdin_b64?: string }> {
  const { stdin, err } = terminal;
  if (stdin.isTTY === true && !sayTerminal(err, wait)) return {};
  if (!wait && !(await isSpeaking(stdin))) {
    err.write(
      "substrate: standard input is open but silent, so the command gets no input; --stdin waits for it\n",
    );
    stdin.destroy();
    return {};
  }
  const parts: Buffer[] = [];
  let size = 0;
  for await (const chunk of stdin as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_STDIN)
      throw new Complaint(
        `Standard input is longer than ${MAX_STDIN} bytes: write it to a file in the project`,
      );
    parts.push(chunk);
  }
  return size === 0 ? {} : { stdin_b64: Buffer.concat(parts).toString("base64") };
}

/** What becomes of this terminal's input; returns whether it is read. A stderr that is no terminal has nobody in front of it. */
function sayTerminal(err: Terminal["err"], wait: boolean): boolean {
  const words = wait
    ? "type the command's input; Ctrl-D at the start of a line ends the input"
    : "the command gets no input from this terminal; --stdin lets you type it first";
  if (err.isTTY === true) err.write(`substrate: ${words}\n`);
  return wait;
}

/** Whether bytes or the end arrive within {@link SILENCE_MS}. */
function isSpeaking(stdin: ReadStream): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => settle(false), SILENCE_MS);
    const onSign = (): void => settle(true);
    const settle = (speaking: boolean): void => {
      clearTimeout(timer);
      stdin.off("readable", onSign).off("end", onSign).off("error", onSign);
      resolve(speaking);
    };
    stdin.once("readable", onSign).once("end", onSign).once("error", onSign);
  });
}
