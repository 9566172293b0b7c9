import type { Terminal } from "../terminal/terminal.ts";

/** After that long without an answer, a person at a terminal is told what is waited for. */
const SILENCE_MS = 400;

/** And every so often that it is waited for still. */
const AGAIN_MS = 5000;

/** Waits for an answer, and says so at a terminal when it takes a while. */
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
