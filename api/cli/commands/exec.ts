import { constants } from "node:os";
import type { ExecuteReply, HealthReply } from "../../../schemas/generated/types.ts";
import { type Answer, call } from "../../client/client.ts";
import { askingHere } from "../questions/ask-here.ts";
import { observedWords } from "../words/observed-words.ts";
import { ask, exitOfRefusal, wordsOf } from "../terminal/replies.ts";
import { timeLimit } from "../words/durations.ts";
import { Complaint, EXIT_SUBSTRATE, harmlessLine, printJson, type Terminal } from "../terminal/terminal.ts";
import { type CommandOptions, commandBody, commandSocket, parentSpan } from "./command-body.ts";
import { stdinField } from "./stdin-field.ts";

export type ExecOptions = CommandOptions & {
  readonly timeout?: string;
  readonly keep?: boolean;
  readonly stdin?: boolean;
  readonly requireApproval?: boolean;
  readonly wait?: boolean;
  readonly json?: boolean;
};

/** Runs one command through the API: its output, and its exit code. */
export async function execCommand(
  terminal: Terminal,
  words: readonly string[],
  options: ExecOptions,
): Promise<number> {
  if (terminal.environment["SUBSTRATE_WORLD"] === "disabled") {
    throw new Complaint(
      "Cannot run with SUBSTRATE_WORLD=disabled: this version runs every command in a world. Unset the variable",
    );
  }
  const limit = options.timeout === undefined ? undefined : timeLimit(options.timeout);
  const body = {
    ...commandBody(terminal, words, options),
    ...parentSpan(terminal),
    ...(await stdinField(terminal, options.stdin === true)),
    ...(limit === undefined ? { no_time_limit: true } : { timeout_ms: limit }),
    max_output_bytes: MAX_OUTPUT,
    ...(options.keep === true ? { background: "keep" } : {}),
    ...(options.requireApproval === true ? { require_approval: true } : {}),
  };
  const socket = commandSocket(terminal, options);
  const asking = {
    body,
    wait: options.wait === true,
    silent: options.json === true,
    // What was typed as the command's input has used up the terminal's.
    inputTaken: options.stdin === true,
  };
  const answer = await askingHere(terminal, asking, (sent, id) => callUntilSignal(socket, sent, id));
  if (typeof answer === "number") {
    if (answer === INTERRUPTED && terminal.err.isTTY && options.json !== true)
      terminal.err.write(LOST_OUTPUT);
    return answer;
  }
  if (options.json === true) printJson(terminal, answer.document);
  if (answer.status !== 200) {
    if (options.json !== true) terminal.err.write(`substrate: ${wordsOf(answer)}\n`);
    return exitOfRefusal(answer);
  }
  const reply = answer.document as ExecuteReply;
  const ownLimit = reply.timed_out && limit !== undefined && reply.duration_ms >= limit;
  if (options.json !== true) show(terminal, reply, ownLimit ? `--timeout ${options.timeout}` : undefined);
  if (options.keep === true && options.json !== true) await sayKept(terminal, reply);
  if (!reply.truncated) return reply.exit;
  terminal.err.write(`substrate: ${cutWords(reply)}\n`);
  return EXIT_SUBSTRATE;
}

/** Ctrl-C. */
const INTERRUPTED = 128 + constants.signals.SIGINT;

/** Whoever waits for a server's first line waits in vain. */
const LOST_OUTPUT =
  "substrate: the command was ended before its output was printed: exec prints the output at the end. For a command that goes on running: substrate exec --keep -- 'COMMAND > FILE 2>&1 &', then 'substrate world publish PORT' for a server\n";

/** Of each stream. A reply may hold twice as much; then four commands with long outputs would make a fifth one wait. */
const MAX_OUTPUT = 8 * 1024 * 1024;

/** Half an output must not pass for a whole one: whoever pipes it on sees no sentence, and sees the exit code. */
function cutWords({ stdout_b64, stdout_bytes, stderr_b64, stderr_bytes, exit }: ExecuteReply): string {
  const cut = [
    { name: "standard output", all: stdout_bytes, kept: Buffer.byteLength(stdout_b64, "base64") },
    { name: "standard error", all: stderr_bytes, kept: Buffer.byteLength(stderr_b64, "base64") },
  ].filter(({ all, kept }) => kept < all);
  const parts = cut.map(({ name, all, kept }) => `${all - kept} of ${all} bytes of ${name}`);
  return `${parts.join(" and ")} are missing from the middle: exec takes at most ${MAX_OUTPUT} bytes of each (max_output_bytes). Let the command write to a file in the project. Its exit code was ${exit}`;
}

/** @param ownLimit the option that ended the command, if one did. */
function show(terminal: Terminal, reply: ExecuteReply, ownLimit: string | undefined): void {
  terminal.out.write(Buffer.from(reply.stdout_b64, "base64"));
  terminal.err.write(Buffer.from(reply.stderr_b64, "base64"));
  const observed = observedWords(reply);
  if (observed !== undefined) terminal.err.write(`substrate: ${harmlessLine(observed)}\n`);
  if (ownLimit === undefined) sayNotices(terminal, reply);
  else {
    sayNotices(terminal, { ...reply, notices: reply.notices.filter(({ kind }) => kind !== "budget") });
    terminal.err.write(`substrate: the command timed out: ${ownLimit}\n`);
  }
  // A broker that is older than this program leaves it out where there is none.
  if (typeof reply.hint === "string") terminal.err.write(`substrate: ${harmlessLine(reply.hint)}\n`);
}

/** Says what goes on running, and what can be done with it. */
async function sayKept(terminal: Terminal, { world_id: id }: ExecuteReply): Promise<void> {
  const count = await keptIn(terminal, id);
  if (count === 0) return;
  const many = count === 1 ? "1 process is still running" : `${count} processes are still running`;
  const what = count === undefined ? "background processes are still running" : many;
  terminal.err.write(
    `substrate: ${what} in this folder's world: 'substrate world status' lists them, 'substrate world publish PORT' forwards a port of 127.0.0.1 to one, 'substrate world restart' ends them\n`,
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

/** What the reply's own stderr, or its hint about held changes, does not say already. */
function sayNotices(terminal: Terminal, { notices, stderr_b64 }: ExecuteReply): void {
  if (notices.length === 0) return;
  const said = Buffer.from(stderr_b64, "base64").toString();
  for (const { kind, message, count } of notices) {
    if (kind === "held" || said.includes(message)) continue;
    const times = count === 1 || kind === "world_only" ? "" : ` (${count} times)`;
    terminal.err.write(`substrate: ${harmlessLine(message)}${times}\n`);
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
