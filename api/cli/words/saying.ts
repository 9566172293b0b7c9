import type { Terminal } from "../terminal/terminal.ts";

/** Delay before a person at a terminal reads the cause of the wait. */
const SILENCE_MS = 400;

/** Interval of further reports during the wait. */
const AGAIN_MS = 5000;

/** Waits for an answer; on a terminal, reports a long wait. */
export async function saying<T>(terminal: Terminal, what: string, asked: Promise<T>): Promise<T> {
  if (terminal.err.isTTY !== true) return await asked;
  const began = performance.now();
  const timer = setTimeout(() => terminal.err.write(`${what} …\n`), SILENCE_MS);
  const again = setInterval(() => {
    terminal.err.write(`${what} … ${Math.round((performance.now() - began) / 1000)} s\n`);
  }, AGAIN_MS);
  try {
    return await asked;
  } finally {
    clearTimeout(timer);
    clearInterval(again);
  }
}
