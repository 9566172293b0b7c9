import { constants } from "node:os";
import type { ExecuteReply } from "../../../schemas/generated/types.ts";
import { type Answer, call } from "../../client.ts";
import { askingHere } from "../ask-here.ts";
import { exitOfRefusal, wordsOf } from "../replies.ts";
import { Complaint, harmlessLine, printJson, type Terminal } from "../terminal.ts";
import { type CommandOptions, commandBody, commandSocket, parentSpan } from "./command-body.ts";
import { stdinField } from "./stdin-field.ts";

export type ExecOptions = CommandOptions & {
  readonly timeout?: string;
  readonly keep?: boolean;
  readonly stdin?: boolean;
  readonly requireApproval?: boolean;
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
      "SUBSTRATE_WORLD=disabled is not in this version: every command runs in a world. Unset it",
    );
  }
  const body = {
    ...commandBody(terminal, words, options),
    ...parentSpan(terminal),
    ...(await stdinField(terminal, options.stdin === true)),
    ...(options.timeout === undefined ? {} : { timeout_ms: milliseconds(options.timeout) }),
    ...(options.keep === true ? { background: "keep" } : {}),
    ...(options.requireApproval === true ? { require_approval: true } : {}),
  };
  const send = (): Promise<Answer | number> => callUntilSignal(commandSocket(terminal, options), body);
  const answer = await (options.json === true ? send() : askingHere(terminal, send));
  if (typeof answer === "number") return answer;
  if (options.json === true) printJson(terminal, answer.document);
  if (answer.status !== 200) {
    if (options.json !== true) terminal.err.write(`substrate: ${wordsOf(answer)}\n`);
    return exitOfRefusal(answer);
  }
  const reply = answer.document as ExecuteReply;
  if (options.json !== true) show(terminal, reply);
  return reply.exit;
}

function show(terminal: Terminal, reply: ExecuteReply): void {
  terminal.out.write(Buffer.from(reply.stdout_b64, "base64"));
  terminal.err.write(Buffer.from(reply.stderr_b64, "base64"));
  if (reply.truncated)
    terminal.err.write(
      `substrate: the middle of the output is left out (${reply.stdout_bytes} bytes, ${reply.stderr_bytes} on stderr)\n`,
    );
  sayNotices(terminal, reply);
  if (reply.timed_out) terminal.err.write("substrate: the command was ended because its time was over\n");
  if (reply.fs_diff?.held === true) {
    const { writes, mods, deletes } = reply.fs_diff;
    terminal.err.write(
      `substrate: changes are held and not in the project: ${writes.length} written, ${mods.length} modified, ${deletes.length} deleted (${reply.span_id})\n`,
    );
  }
  if (reply.hint !== undefined) terminal.err.write(`substrate: ${harmlessLine(reply.hint)}\n`);
}

/** What the reply's own stderr, or the lines about held changes, do not say already. */
function sayNotices(terminal: Terminal, { notices, stderr_b64 }: ExecuteReply): void {
  if (notices.length === 0) return;
  const said = Buffer.from(stderr_b64, "base64").toString();
  for (const { kind, message, count } of notices) {
    if (kind === "held" || said.includes(message)) continue;
    const times = count === 1 || kind === "world_only" ? "" : ` (${count} times)`;
    terminal.err.write(`substrate: ${harmlessLine(message)}${times}\n`);
  }
}

function milliseconds(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 1) return value;
  throw new Complaint(`Cannot use '${text}' as --timeout: a whole number of milliseconds is wanted`);
}

/** The answer, or the exit code of whoever ended the wait; the broker then ends the command. */
async function callUntilSignal(socket: string, body: object): Promise<Answer | number> {
  const leaving = new AbortController();
  let code: number | undefined;
  const leave = (name: NodeJS.Signals): void => {
    code = 128 + constants.signals[name];
    leaving.abort();
  };
  const names = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const name of names) process.once(name, leave);
  try {
    return await call(socket, "POST", "/v1/execute", body, leaving.signal);
  } catch (error) {
    if (code === undefined) throw error;
    return code;
  } finally {
    for (const name of names) process.off(name, leave);
  }
}
