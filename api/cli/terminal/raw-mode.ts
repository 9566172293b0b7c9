/** The person's terminal, handed over to a program that runs in a world. */
import { spawnSync } from "node:child_process";
import type { ReadStream } from "node:tty";

/** Signals that end this process, and after which the terminal must be usable. */
const ENDING = ["SIGTERM", "SIGHUP", "SIGQUIT"] as const;

/**
 * Passes every key on, until the returned function is called. The terminal is restored on each way out: a normal end, an exception,
 * and the signals that end a process.
 */
export function rawMode(stdin: ReadStream): () => void {
  if (stdin.isTTY !== true) return () => {};
  stdin.setRawMode(true);
  // Node leaves the processing of output on: each line feed of the program would become a carriage return and a line feed.
  spawnSync("/bin/stty", ["-opost"], { stdio: ["inherit", "ignore", "ignore"] });
  let isRaw = true;
  const restore = (): void => {
    if (isRaw && !stdin.destroyed) stdin.setRawMode(false);
    isRaw = false;
  };
  process.once("exit", restore);
  return () => {
    process.off("exit", restore);
    restore();
  };
}

let lend: (() => () => void) | undefined;

/** Registers how the program that has the terminal lends it for a question; returns how to end that. */
export function lendsBy(lending: () => () => void): () => void {
  lend = lending;
  return () => {
    lend = undefined;
  };
}

/** Takes the terminal back for a question, so that its keys are the answer and nothing else; returns how to give it back. */
export function borrowed(): () => void {
  return lend?.() ?? (() => {});
}

/** Calls a function at the first signal that ends a process; returns how to stop listening. */
export function onEnding(end: (name: NodeJS.Signals) => void): () => void {
  for (const name of ENDING) process.on(name, end);
  return () => {
    for (const name of ENDING) process.off(name, end);
  };
}

/** Whether both sides of a program's terminal are a terminal here. */
export function isTerminal({ stdin, out }: { stdin: NodeJS.ReadStream; out: NodeJS.WriteStream }): boolean {
  return stdin.isTTY === true && out.isTTY === true;
}

/** The terminal's size as a request has it. */
export function sizeOf({ columns, rows }: NodeJS.WriteStream): {
  readonly cols: number;
  readonly rows: number;
} {
  return { cols: columns > 0 ? columns : 80, rows: rows > 0 ? rows : 24 };
}
