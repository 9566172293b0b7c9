/** The tool `bash`: a command as a stream, with progress while it runs. */
import { existsSync } from "node:fs";
import { harmlessLine } from "../cli/terminal/terminal.ts";
import { umaskField } from "../client/command.ts";
import { Stream } from "../client/stream.ts";
import type { ExecuteReply } from "../../schemas/generated/types.ts";
import { Output } from "./outputs.ts";
import { joined, noticeLines, outputText, refusalReply, type Reply } from "./replies.ts";
import type { Mcp, Turn } from "./tools.ts";

/** Models time out in minutes; longer commands say so, or are kept in the background. */
const TIMEOUT_MS = 120_000;
const LONGEST_MS = 3_600_000;

/** Between two notifications of progress. */
const PROGRESS_MS = 500;

type Ended = Pick<
  ExecuteReply,
  "exit" | "signal" | "timed_out" | "duration_ms" | "decision" | "notices" | "hint" | "span_id"
>;

export async function bash(mcp: Mcp, args: Readonly<Record<string, unknown>>, turn: Turn): Promise<Reply> {
  const output = new Output();
  const progress = new Ticker(turn);
  const timeout = args["timeout_ms"];
  const body = {
    ...(await mcp.spot(args)),
    ...mcp.session,
    ...umaskField(),
    cmd: args["command"],
    ...(existsSync("/bin/bash") ? { shell: "bash" } : {}),
    outputs: "together",
    // Nobody types: a program that reads its input finds the end of it, as in an agent's own shell.
    stdin: false,
    timeout_ms: typeof timeout === "number" ? Math.min(timeout, LONGEST_MS) : TIMEOUT_MS,
    ...(args["background"] === true ? { background: "keep" } : {}),
    approval_wait_ms: mcp.waitMs,
    questions: true,
  };
  const stream = new Stream(mcp.socket, "/v1/stream", body, {
    started: () => progress.say("started"),
    output: (_name, bytes, taken) => {
      output.push(bytes);
      progress.say(lastLine(bytes));
      taken();
    },
    inputTaken: () => {},
    asked: (approval) => progress.say(waitingWords(approval), true),
  });
  const leave = (): void => stream.close();
  turn.signal.addEventListener("abort", leave, { once: true });
  try {
    const answer = await stream.ended;
    output.finish();
    if (answer.status !== 200) return refusalReply(answer);
    const reply = answer.document as Ended;
    return { text: joined(outputText(output, mcp.outputs), endLines(reply)) };
  } catch (error) {
    if (turn.signal.aborted) return { text: "The command was cancelled and has ended", isError: true };
    throw error;
  } finally {
    progress.end();
    turn.signal.removeEventListener("abort", leave);
  }
}

function waitingWords(approval: string): string {
  return `A person must answer first: 'substrate approve ${approval} --once' or 'substrate deny ${approval}'`;
}

function endLines(reply: Ended): readonly string[] {
  const {
    exit,
    signal,
    timed_out: timedOut,
    duration_ms: ms,
    decision,
    notices,
    hint,
    span_id: span,
  } = reply;
  const how = timedOut ? ", timed out" : signal === null ? "" : `, ${signal}`;
  return [
    `[exit ${exit}${how}; ${decision.verdict}; ${Math.round(ms)} ms; ${span}]`,
    ...noticeLines(notices, hint),
  ];
}

function lastLine(bytes: Buffer): string {
  return harmlessLine(bytes.subarray(-400).toString().trimEnd().split("\n").at(-1)?.slice(-200) ?? "");
}

/** Sends the newest words, at most twice a second. */
class Ticker {
  readonly #turn: Turn;
  #timer: NodeJS.Timeout | undefined;
  #words = "";

  constructor(turn: Turn) {
    this.#turn = turn;
  }

  say(words: string, atOnce = false): void {
    this.#words = words;
    if (atOnce) this.#send();
    else this.#timer ??= setTimeout(() => this.#send(), PROGRESS_MS);
  }

  end(): void {
    clearTimeout(this.#timer);
  }

  #send(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#turn.progress(this.#words);
  }
}
