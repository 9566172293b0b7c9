/** Runs an agent behind the proxy: two streams of lines, and one end for both sides. */
import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:os";
import type { Readable, Writable } from "node:stream";
import { LineWriter, linesOf } from "./lines.ts";
import { Proxy, type ProxyOptions } from "./proxy.ts";

/** How long an agent may take after its input has ended, and after SIGTERM. */
const LAST_WORDS_MS = 3000;

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export type AcpOptions = ProxyOptions & {
  readonly agent: readonly [string, ...string[]];
  readonly stdin: Readable;
  readonly stdout: Writable;
};

/** Resolves with the agent's exit code; 128 + n for a signal, 127 for an agent that cannot be started. */
export async function serveAcp(options: AcpOptions): Promise<number> {
  const [program, ...words] = options.agent;
  const agent = spawn(program, words, { stdio: ["pipe", "pipe", "inherit"] });
  const exit = exitOf(agent, options);
  const end = new Ending(agent);
  const editor = new LineWriter(options.stdout, () => end.begin());
  const input = new LineWriter(agent.stdin, () => {});
  const proxy = new Proxy(options, editor, input);
  for (const name of SIGNALS) process.on(name, () => end.begin(name));
  const reads = [
    passed(options.stdin, (line) => proxy.fromEditor(line)).then(() => end.begin()),
    passed(agent.stdout, (line) => proxy.fromAgent(line)),
  ].map((read) =>
    read.catch((error: unknown) => {
      if (end.isOver) return;
      options.complain(error instanceof Error ? error.message : String(error));
      end.begin("SIGTERM");
    }),
  );
  try {
    const code = await exit;
    // What the agent said last is still in the pipe; a program that it left behind may hold the pipe open.
    await Promise.race([reads[1], new Promise((resolve) => setTimeout(resolve, LAST_WORDS_MS).unref())]);
    await editor.ready();
    return code;
  } finally {
    end.over();
    proxy.end();
    options.stdin.destroy();
  }
}

async function passed(from: Readable, take: (line: Buffer) => Promise<void>): Promise<void> {
  for await (const line of linesOf(from)) await take(line);
}

function exitOf(agent: ChildProcess, { complain, agent: [program] }: AcpOptions): Promise<number> {
  return new Promise((resolve) => {
    agent.once("error", (error: NodeJS.ErrnoException) => {
      complain(`Cannot start '${program}': ${error.code ?? error.message}`);
      resolve(error.code === "ENOENT" ? 127 : 126);
    });
    agent.once("exit", (code, signal) => resolve(code ?? 128 + constants.signals[signal ?? "SIGKILL"]));
  });
}

/** Ends the agent: its input, then SIGTERM, then SIGKILL. */
class Ending {
  readonly #agent: ChildProcess;
  #timers: NodeJS.Timeout[] = [];
  /** The agent has ended: what closes afterwards is no fault, and ends nothing. */
  isOver = false;

  constructor(agent: ChildProcess) {
    this.#agent = agent;
  }

  begin(signal?: NodeJS.Signals): void {
    if (this.isOver) return;
    this.#agent.stdin?.end();
    if (signal !== undefined) this.#agent.kill(signal);
    if (this.#timers.length > 0) return;
    const at = (times: number, name: NodeJS.Signals): NodeJS.Timeout =>
      setTimeout(() => this.#agent.kill(name), times * LAST_WORDS_MS);
    this.#timers = [at(1, "SIGTERM"), at(2, "SIGKILL")];
  }

  over(): void {
    this.isOver = true;
    for (const timer of this.#timers) clearTimeout(timer);
  }
}
