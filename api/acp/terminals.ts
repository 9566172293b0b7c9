/**
 * `terminal/*`: commands in the session's world, and their output.
 *
 * The editor could run `substrate exec` in a terminal of its own, and would show it as it shows every terminal. But the protocol does
 * not say whether an editor quotes a command's arguments for its shell; one that joins them would run the second half of `a && b` on
 * the host. So the terminals are ours, and the editor, which knows only terminals of its own, is shown their output as text.
 */
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import type { ExecuteReply } from "../../schemas/generated/types.ts";
import { NoBroker } from "../client/client.ts";
import { Stream } from "../client/stream.ts";
import {
  CANCELLED,
  type Fields,
  fieldsOf,
  INVALID_PARAMS,
  listOf,
  Refused,
  refusedBy,
  refusedFor,
  textOf,
} from "./messages.ts";
import { OutputTail } from "./output.ts";
import type { Whose } from "./whose.ts";

/** Bound on terminals that the agent has not released. */
const MAX_TERMINALS = 64;

const DEFAULT_BYTES = 1024 * 1024;
const MAX_BYTES = 16 * 1024 * 1024;

/** Bytes of output that the editor is shown. */
const SHOWN_BYTES = 32 * 1024;

/** A person's answer is awaited as long as the policy's question waits. */
const LONGEST_WAIT_MS = 86_400_000;

type ExitStatus = { readonly exitCode: number | null; readonly signal: string | null };

type Exit = Pick<ExecuteReply, "exit" | "signal"> & { readonly lines: readonly string[] };

export type TerminalEvents = {
  /** The broker waits for a person's answer before the command goes on. */
  readonly asked: (terminal: Terminal, approval: string) => void;
  readonly changed: (terminal: Terminal) => void;
};

export class Terminals {
  readonly #whose: Whose;
  readonly #events: TerminalEvents;
  readonly #all = new Map<string, Terminal>();
  /** Terminals that wait for the broker's verdict, or for a person's. */
  readonly #starting = new Set<Terminal>();

  constructor(whose: Whose, events: TerminalEvents) {
    this.#whose = whose;
    this.#events = events;
  }

  find(id: unknown): Terminal | undefined {
    return typeof id === "string" ? this.#all.get(id) : undefined;
  }

  /** `terminal/create`: resolves when the command has started. Throws {@link Refused} for a denied command. */
  async create(params: Fields, cwd: string, signal: AbortSignal): Promise<object> {
    if (this.#all.size + this.#starting.size >= MAX_TERMINALS)
      throw new Refused(
        INVALID_PARAMS,
        `${MAX_TERMINALS} terminals are open; release one with terminal/release`,
      );
    const terminal = new Terminal(this.#whose, params, cwd, this.#events);
    this.#starting.add(terminal);
    const leave = (): void => terminal.kill();
    signal.addEventListener("abort", leave, { once: true });
    try {
      await terminal.started;
      this.#all.set(terminal.id, terminal);
      return { terminalId: terminal.id };
    } catch (error) {
      if (signal.aborted) throw new Refused(CANCELLED, "Cancelled: the command did not start");
      throw error;
    } finally {
      signal.removeEventListener("abort", leave);
      this.#starting.delete(terminal);
    }
  }

  /** The other methods, on a terminal of this session. */
  async use(method: string, params: Fields): Promise<object> {
    const terminal = this.find(params["terminalId"]);
    if (terminal === undefined || terminal.session !== params["sessionId"])
      throw new Refused(INVALID_PARAMS, "Unknown terminal: it was released, or belongs to another session");
    if (method === "terminal/output") return terminal.output();
    if (method === "terminal/wait_for_exit") return await terminal.exited;
    terminal.kill();
    if (method === "terminal/release") this.#all.delete(terminal.id);
    return {};
  }

  /** Ends the commands of a session that wait for a person: its turn was cancelled. */
  cancel(session: unknown): void {
    for (const terminal of this.#starting) if (terminal.session === session) terminal.kill();
  }

  end(): void {
    for (const terminal of [...this.#all.values(), ...this.#starting]) terminal.kill();
  }
}

export class Terminal {
  readonly id = `trm_${randomUUID()}`;
  readonly session: string;
  readonly command: string;
  /** Resolves when the command runs. Rejects with {@link Refused}. */
  readonly started: Promise<void>;
  readonly exited: Promise<ExitStatus>;
  readonly #output: OutputTail;
  readonly #stream: Stream;
  #status: ExitStatus | undefined;

  constructor(whose: Whose, params: Fields, cwd: string, events: TerminalEvents) {
    const words = wordsOf(params);
    const limit = params["outputByteLimit"];
    this.session = textOf(params["sessionId"]) ?? "";
    this.command = "cmd" in words ? words.cmd : words.argv.join(" ");
    this.#output = new OutputTail(Math.min(typeof limit === "number" ? limit : DEFAULT_BYTES, MAX_BYTES));
    const body = {
      ...whose.spot(textOf(params["cwd"]) ?? cwd),
      ...words,
      ...variablesOf(params),
      ...whose.callerShell,
      no_time_limit: true,
      outputs: "together",
      stdin: false,
      questions: true,
      approval_wait_ms: LONGEST_WAIT_MS,
    };
    let begin = (): void => {};
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    this.#stream = new Stream(whose.socket(), "/v1/stream", body, {
      started: () => begin(),
      output: (stream, bytes, taken) => {
        this.#output.push(stream, bytes);
        taken();
        events.changed(this);
      },
      inputTaken: () => {},
      asked: (approval) => events.asked(this, approval),
    });
    const ended = this.#stream.ended.then((answer) => {
      if (answer.status !== 200) throw refusedBy(answer);
      return answer.document as Exit;
    });
    this.started = Promise.race([begun, ended.then(() => undefined)]).catch((error: unknown) => {
      throw error instanceof NoBroker ? new Refused(-32_603, error.message) : refusedFor(error);
    });
    this.exited = ended
      .then(
        (exit) => this.#finish(exit),
        (error: unknown) => this.#lose(error),
      )
      .finally(() => events.changed(this));
  }

  output(): object {
    const exit = this.#status;
    return { ...this.#output.read(), ...(exit === undefined ? {} : { exitStatus: exit }) };
  }

  /** What the editor is shown: the command, the end of its output, and how it ended. */
  shown(): string {
    const { output, truncated } = this.#output.read(SHOWN_BYTES);
    const exit = this.#status;
    const how =
      exit === undefined ? [] : [exit.signal === null ? `[exit ${exit.exitCode}]` : `[${exit.signal}]`];
    return fenced([`$ ${this.command}`, ...(truncated ? ["…"] : []), output.trimEnd(), ...how].join("\n"));
  }

  kill(): void {
    if (this.#status === undefined) this.#stream.close();
  }

  #finish({ exit, signal, lines }: Exit): ExitStatus {
    for (const line of lines) this.#output.say(`substrate: ${line}\n`);
    this.#status = signal === null ? { exitCode: exit, signal: null } : { exitCode: null, signal };
    return this.#status;
  }

  /** The connection was closed: by {@link kill}, or because the broker is gone, which ends its worlds. */
  #lose(error: unknown): ExitStatus {
    if (error instanceof Refused) this.#output.say(`substrate: ${error.message}\n`);
    this.#status = { exitCode: null, signal: "SIGKILL" };
    return this.#status;
  }
}

/** As for `substrate exec`: a command alone is read by a shell, as agents send it; with arguments it is a program. */
function wordsOf(
  params: Fields,
): { readonly cmd: string; readonly shell?: string } | { readonly argv: readonly string[] } {
  const command = textOf(params["command"]);
  const args = listOf(params["args"]);
  if (command === undefined || command === "" || !args.every((word) => typeof word === "string"))
    throw new Refused(INVALID_PARAMS, "'command' must be text, and 'args' a list of texts");
  if (args.length > 0) return { argv: [command, ...args] };
  return { cmd: command, ...(existsSync("/bin/bash") ? { shell: "bash" } : {}) };
}

function variablesOf(params: Fields): { readonly env?: Record<string, string> } {
  const pairs = listOf(params["env"]).map((one) => {
    const { name, value } = fieldsOf(one) ?? {};
    if (typeof name !== "string" || typeof value !== "string")
      throw new Refused(INVALID_PARAMS, "'env' must be a list of names and values");
    return [name, value] as const;
  });
  return pairs.length === 0 ? {} : { env: Object.fromEntries(pairs) };
}

/** Text as a block of code in Markdown: nothing in it is markup. */
export function fenced(text: string): string {
  const runs = [...text.matchAll(/`+/g)].map(([run]) => run.length);
  const fence = "`".repeat(Math.max(2, ...runs) + 1);
  return `${fence}\n${text}\n${fence}`;
}
