import { constants } from "node:os";
import type { ExecuteReply, HealthReply } from "../../../schemas/generated/types.ts";
import { type Answer, call } from "../../client/client.ts";
import { askingHere } from "../questions/ask-here.ts";
import { ask, exitOfRefusal, wordsOf } from "../terminal/replies.ts";
import { timeLimit } from "../words/durations.ts";
import { EXIT_SUBSTRATE, harmlessLine, printJson, type Terminal } from "../terminal/terminal.ts";
import {
  type CommandOptions,
  commandBody,
  commandSocket,
  isWorldDisabled,
  parentSpan,
} from "./command-body.ts";
import { streamed, togetherField } from "./exec-stream.ts";
import { DETACHED, detached } from "./run.ts";
import { readsInput, stdinField } from "./stdin-field.ts";

export type ExecOptions = CommandOptions & {
  readonly timeout?: string;
  readonly keep?: boolean;
  readonly session?: string;
  readonly sessionState?: string;
  readonly detach?: boolean;
  readonly stdin?: boolean;
  readonly requireApproval?: boolean;
  readonly wait?: boolean;
  readonly json?: boolean;
};

/** Runs one command through the API: its output as it is written, and its exit code. */
export async function execCommand(
  terminal: Terminal,
  words: readonly string[],
  options: ExecOptions,
): Promise<number> {
  const limit = options.timeout === undefined ? undefined : timeLimit(options.timeout);
  const body = {
    ...commandBody(terminal, words, options),
    ...parentSpan(terminal),
    ...(limit === undefined ? { no_time_limit: true } : { timeout_ms: limit }),
    ...(options.session === undefined ? {} : { session_key: options.session }),
    ...(options.sessionState === undefined ? {} : { session_state: options.sessionState }),
    ...(options.keep === true ? { background: "keep" } : {}),
    ...(isWorldDisabled(terminal) ? { world: "disabled" } : {}),
    ...(options.requireApproval === true ? { require_approval: true } : {}),
  };
  return options.json === true
    ? await printReply(terminal, body, options)
    : await printOutput(terminal, body, options);
}

async function printOutput(terminal: Terminal, body: object, options: ExecOptions): Promise<number> {
  const socket = commandSocket(terminal, options);
  // Its outputs will be those of whoever attaches.
  if (options.detach === true) return await detached(terminal, socket, { ...body, ...DETACHED });
  const input = readsInput(terminal, options.stdin === true);
  const asking = {
    body: { ...body, ...togetherField(), stdin: input },
    wait: options.wait === true,
    silent: false,
    // What was typed as the command's input has used up the terminal's.
    inputTaken: options.stdin === true,
  };
  const answer = await askingHere(terminal, asking, (sent, id) =>
    streamed(terminal, { socket, path: "/v1/stream", body: sent, hasInput: input, requestId: id }),
  );
  if (typeof answer === "number") return answer;
  if (answer.status !== 200) {
    terminal.err.write(`substrate: ${wordsOf(answer)}\n`);
    return exitOfRefusal(answer);
  }
  const { exit, lines, world_id: world } = answer.document as ExecuteReply & { lines: readonly string[] };
  for (const line of lines) terminal.err.write(`substrate: ${harmlessLine(line)}\n`);
  if (options.keep === true) await sayKept(terminal, world, options.agent);
  return exit;
}

/** `--json`: the broker's whole reply, with the outputs. */
async function printReply(terminal: Terminal, body: object, options: ExecOptions): Promise<number> {
  const socket = commandSocket(terminal, options);
  const stdin = await stdinField(terminal, options.stdin === true);
  const asking = {
    body: { ...body, ...stdin, max_output_bytes: MAX_OUTPUT },
    wait: options.wait === true,
    silent: true,
    inputTaken: options.stdin === true,
  };
  const answer = await askingHere(terminal, asking, (sent, id) => callUntilSignal(socket, sent, id));
  if (typeof answer === "number") return answer;
  printJson(terminal, answer.document);
  if (answer.status !== 200) return exitOfRefusal(answer);
  const reply = answer.document as ExecuteReply;
  if (!reply.truncated) return reply.exit;
  terminal.err.write(`substrate: ${cutWords(reply)}\n`);
  return EXIT_SUBSTRATE;
}

/** Of each stream. A reply may hold twice as much; then four commands with long outputs would make a fifth one wait. */
const MAX_OUTPUT = 8 * 1024 * 1024;

/** Half an output must not pass for a whole one: whoever pipes it on sees no sentence, and sees the exit code. */
function cutWords({ stdout_b64, stdout_bytes, stderr_b64, stderr_bytes, exit }: ExecuteReply): string {
  const cut = [
    { name: "standard output", all: stdout_bytes, kept: Buffer.byteLength(stdout_b64, "base64") },
    { name: "standard error", all: stderr_bytes, kept: Buffer.byteLength(stderr_b64, "base64") },
  ].filter(({ all, kept }) => kept < all);
  const parts = cut.map(({ name, all, kept }) => `${all - kept} of ${all} bytes of ${name}`);
  return `${parts.join(" and ")} are missing from the middle: with --json, exec takes at most ${MAX_OUTPUT} bytes of each (max_output_bytes). Leave --json out, or let the command write to a file in the project. Its exit code was ${exit}`;
}

/** Says what goes on running, and what can be done with it. */
async function sayKept(terminal: Terminal, id: string, agent: string | undefined): Promise<void> {
  const count = await keptIn(terminal, id);
  if (count === 0) return;
  const many = count === 1 ? "1 process is still running" : `${count} processes are still running`;
  const of = agent === undefined ? "" : ` --agent ${agent}`;
  const what = count === undefined ? "background processes are still running" : many;
  terminal.err.write(
    `substrate: ${what} in this folder's world: 'substrate world status' lists them, 'substrate world publish PORT${of}' forwards a port of 127.0.0.1 to one, 'substrate world restart${of}' ends them\n`,
  );
}

/** How many processes run in the world; undefined where the operator's socket does not say: the command ran all the same. */
async function keptIn(terminal: Terminal, id: string): Promise<number | undefined> {
  try {
    const { worlds } = await ask<HealthReply>(terminal, "/v1/health");
    return worlds.find(({ world_id }) => world_id === id)?.processes?.length ?? 0;
  } catch {
    return undefined;
  }
}

/** The answer, or the exit code of whoever ended the wait; the broker then ends the command. */
async function callUntilSignal(socket: string, body: object, requestId?: string): Promise<Answer | number> {
  const leaving = new AbortController();
  let code: number | undefined;
  const leave = (name: NodeJS.Signals): void => {
    code = 128 + constants.signals[name];
    leaving.abort();
  };
  const names = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const name of names) process.once(name, leave);
  try {
    return await call(socket, "POST", "/v1/execute", body, leaving.signal, requestId);
  } catch (error) {
    if (code === undefined) throw error;
    return code;
  } finally {
    for (const name of names) process.off(name, leave);
  }
}
