import { existsSync, lstatSync } from "node:fs";
import { join } from "node:path";
import { quotedWord } from "../../../broker/model/shell-word.ts";
import type { CheckReply, ErrorReply, EventReply, EventRequest } from "../../../schemas/generated/types.ts";
import { type Answer, call } from "../../client/client.ts";
import { isObject } from "../../http/valid-request.ts";
import { harmlessLine, type Terminal } from "../terminal/terminal.ts";
import { callerShell } from "./caller-shell.ts";
import { variable } from "./command-body.ts";
import {
  type Agent,
  type AgentCall,
  agentCall,
  type AgentCommand,
  agentCommand,
  agentNamed,
  Blocked,
  filesOf,
  folderOf,
  sender,
  sessionKey,
  toolOf,
} from "./hook-agents.ts";

/** By which agents block a tool; after any other code but 0 they run it. */
const EXIT_BLOCK = 2;

const MOST_EVENT = 10 * 1024 * 1024;

/** Agents wait 60 seconds or longer for a hook. */
const MOST_MS = 20_000;
const ANSWER_MS = 10_000;
const RECORD_MS = 5000;

/** Linux passes no longer word to a program; agents write words around the command, and each quote as five characters. */
const MOST_WORD = 131_071;
const AROUND = 1024;

/** Answers a coding agent's event, as `shim/front/hook.c`. Everything that goes wrong is exit code 2 and one sentence. */
export async function hookCommand(terminal: Terminal, words: readonly string[]): Promise<number> {
  const late = setTimeout(() => {
    terminal.err.write("substrate: The hook had no verdict after 20 seconds. Nothing ran\n");
    process.exit(EXIT_BLOCK);
  }, MOST_MS);
  let agent: Agent | undefined;
  try {
    agent = agentNamed(words);
    const answer = await answerTo(terminal, agent);
    if (answer !== undefined) await written(terminal, `${JSON.stringify(answer)}\n`);
    return 0;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    terminal.err.write(`substrate: ${harmlessLine(why)}. Nothing ran\n`);
    const explanation = { permissionDecision: "deny", permissionDecisionReason: `${why}. Nothing ran` };
    if (agent?.explainsOnStdout === true) terminal.out.write(`${JSON.stringify(explanation)}\n`);
    return EXIT_BLOCK;
  } finally {
    clearTimeout(late);
  }
}

async function answerTo(terminal: Terminal, named: Agent): Promise<object | undefined> {
  const event = await readEvent(terminal);
  const kind = eventKind(event);
  if (kind !== undefined) return await record(terminal, named, event, kind);
  const agent = sender(named, event, (name) => ownSocket(terminal, name) !== undefined);
  const one = agentCall(agent, event);
  if (one === undefined) return pass(agent);
  const key = one.session === undefined ? {} : { session_key: one.session };
  if (one.tool.kind !== "shell") {
    const { verdict, reason } = await judged(terminal, one, one.cwd, { files: filesOf(one), ...key });
    if (verdict !== "allow") return answerOf(agent, "deny", reason);
    const missing = missingFile(one);
    return missing === undefined ? pass(agent) : answerOf(agent, "deny", notHere(missing));
  }
  const command = agentCommand(one);
  if (one.isLast === true && isRewritten(terminal, one, command)) return pass(agent);
  const kept = command.keep ? { background: "keep" } : {};
  const body = { cmd: command.text, shell: "bash", ...kept, ...key, ...callerShell(terminal) };
  const { verdict, reason, isApproved } = await judged(terminal, one, command.cwd, body);
  if (verdict === "deny") return answerOf(agent, "deny", reason);
  const asks = verdict === "ask";
  const text = rewritten(terminal, one, command, asks, verdict === "isolate");
  if (Buffer.byteLength(text) + AROUND + 4 * text.split("'").length - 4 > MOST_WORD)
    return answerOf(agent, "deny", TOO_LONG);
  if (one.isLast === true) return answerOf(agent, "deny", `${notChanged(agent)}\n${text}`);
  const input = { ...one.input, [one.tool.fields[0]]: text };
  // `claude -p` has nobody whom it could ask, and takes `ask` for a denial: there the command itself waits for an approval.
  const isUnattended = variable(terminal, "CLAUDE_CODE_ENTRYPOINT") === "sdk-cli";
  return asks && !isApproved && agent.asks && !isUnattended
    ? answerOf(agent, "ask", reason, input)
    : answerOf(agent, "allow", undefined, input);
}

/** Records an event that decides nothing. A failure is told, and stops nothing. */
async function record(terminal: Terminal, agent: Agent, event: unknown, kind: Kind): Promise<undefined> {
  try {
    const body = toldOf(agent, event, kind);
    const { status, document } = await asked(socketOf(terminal, agent.name), "/v1/events", body, RECORD_MS);
    const { span_id: span, error } = document as Partial<EventReply & ErrorReply>;
    if (status !== 200 || span === undefined)
      throw new Blocked(error?.message ?? "The broker's answer is not one that this version knows");
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    terminal.err.write(`substrate: ${harmlessLine(why)}. The event is not recorded\n`);
  }
}

/** Leaves the tool to the agent's own rules. For Cursor no answer is a failure, after which `failClosed` blocks the tool. */
function pass({ form }: Agent): object | undefined {
  return form === "cursor" ? {} : undefined;
}

function notChanged({ name }: Agent): string {
  return `This command runs only in a world of Substrate, and ${name} did not have it changed before. Run this one instead, as it stands:`;
}

/** The agent's tool would say only that there is no such file. */
function notHere(path: string): string {
  return `'${harmlessLine(path)}' is not on this machine, where this tool looks. Commands have a /tmp of their world's own: what a command has written there, a command reads`;
}

const TOO_LONG =
  "The command is too long: with its quotes a shell takes 128 KiB in one word. Write it to a file in the project and run that file";

async function readEvent({ stdin }: Terminal): Promise<unknown> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of stdin) {
    parts.push(Buffer.from(part as Uint8Array));
    length += parts.at(-1)?.length ?? 0;
    if (length > MOST_EVENT) throw new Blocked("The event has more than 10 MiB");
  }
  try {
    return JSON.parse(Buffer.concat(parts).toString("utf8"));
  } catch {
    throw new Blocked("The event on standard input is not JSON, or deeper than 64 levels");
  }
}

const KNOWN = ["allow", "isolate", "ask", "deny", "would_deny", "would_ask", "would_isolate"];

type Judged = {
  readonly verdict: CheckReply["decision"]["verdict"];
  readonly reason: string;
  /** Whether an earlier answer of a person lets the command run. */
  readonly isApproved: boolean;
};

/** The broker's verdict; its refusal of the call counts as a denial. Throws {@link Blocked} without a valid answer. */
async function judged(terminal: Terminal, { agent }: AgentCall, cwd: string, body: object): Promise<Judged> {
  const profile = variable(terminal, "SUBSTRATE_PROFILE");
  const socket = socketOf(terminal, agent.name);
  const whose = { agent_id: agent.name, cwd, ...(profile === undefined ? {} : { profile }) };
  const answer = await asked(
    socket,
    "/v1/check",
    { ...whose, ...body, record: true, format: "text" },
    ANSWER_MS,
  );
  const { decision, lines, error, approved } = answer.document as Partial<CheckReply & ErrorReply>;
  const said = answer.status === 200 ? lines : error === undefined ? undefined : [error.message, error.hint];
  const verdict = answer.status === 200 ? decision?.verdict : "deny";
  if (said === undefined || verdict === undefined || !KNOWN.includes(verdict))
    throw new Blocked("The broker's answer is not one that this version knows");
  return { verdict, reason: said.map(harmlessLine).join("\n"), isApproved: approved !== undefined };
}

async function asked(socket: string, path: string, body: object, ms: number): Promise<Answer> {
  try {
    return await call(socket, "POST", path, body, AbortSignal.timeout(ms));
  } catch (error) {
    if (error instanceof Error && error.name === "NoBroker")
      throw new Blocked(`No broker answers on '${socket}'. Run 'substrate broker start'`);
    throw new Blocked(`The broker on '${socket}' gave no answer; 'substrate broker status' says how it is`);
  }
}

function socketOf(terminal: Terminal, agent: string): string {
  return ownSocket(terminal, agent) ?? terminal.home.agentSocket;
}

/** The agent's own socket, where config.yaml names the agent; else its name is a label. */
function ownSocket({ home }: Terminal, agent: string): string | undefined {
  const own = join(home.agentSockets, `${agent}.sock`);
  return lstatSync(own, { throwIfNoEntry: false })?.isSocket() === true ? own : undefined;
}

/**
 * `--wait`: the broker asks too, and holds the command until a person answers it. An earlier answer that the check found lets it run
 * at once, or no longer holds.
 */
function rewritten(
  terminal: Terminal,
  { agent, session }: AgentCall,
  command: AgentCommand,
  asks: boolean,
  isIsolated = false,
): string {
  const { timeoutMs, keep, text } = command;
  const words = [
    ...front(terminal).map(quotedWord),
    `exec --agent ${agent.name} --shell bash`,
    ...(session === undefined ? [] : [`--session ${session}`]),
    ...(session === undefined || agent.keeps === undefined ? [] : [`--session-state ${agent.keeps}`]),
    ...(timeoutMs === undefined || keep ? [] : [`--timeout ${timeoutMs}ms`]),
    // An isolated command's world ends with it; the agent itself lets the command go on.
    ...(keep && !isIsolated ? ["--keep"] : []),
    ...(asks ? ["--wait"] : []),
    "--",
    quotedWord(text),
  ];
  return words.join(" ");
}

/** What {@link quotedWord} makes. */
const QUOTED = /^'[^'\\]*(?:'\\['\\]'[^'\\]*)*'$/;

/** Whether a command has the form of a rewritten one, for the same agent and session. */
function isRewritten(terminal: Terminal, one: AgentCall, command: AgentCommand): boolean {
  return [false, true].some((asks) => {
    const start = rewritten(terminal, one, { ...command, text: "" }, asks).slice(0, -2);
    return command.text.startsWith(start) && QUOTED.test(command.text.slice(start.length));
  });
}

function front({ installation }: Terminal): readonly string[] {
  const native = join(installation.root, ".build/substrate");
  return existsSync(native) ? [native] : [process.execPath, installation.launcher];
}

function answerOf(agent: Agent, decision: "allow" | "ask" | "deny", reason?: string, input?: object): object {
  switch (agent.form) {
    case "claude":
      return {
        hookSpecificOutput: {
          hookEventName: agent.event,
          permissionDecision: decision,
          permissionDecisionReason: reason,
          updatedInput: input,
        },
      };
    case "gemini":
      return {
        decision,
        reason,
        hookSpecificOutput: input === undefined ? undefined : { tool_input: input },
      };
    case "cursor":
      return { permission: decision, user_message: reason, agent_message: reason, updated_input: input };
  }
}

function written({ out }: Terminal, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    out.write(text, (error) => (error ? reject(new Blocked("Cannot write the answer")) : resolve()));
  });
}

/**
 * The file that a tool is to read and that cannot be there: a folder of /tmp or /var/tmp, or a file in them, that this machine does not
 * have. In a folder that is there a missing file needs no words.
 */
function missingFile({ tool, input }: Pick<AgentCall, "tool" | "input">): string | undefined {
  if (tool.kind !== "files" || tool.access === "write") return undefined;
  return tool.fields
    .map((field) => input[field])
    .find((path): path is string => {
      const [first] = typeof path === "string" ? (/^\/(?:var\/)?tmp\/[^/]+/.exec(path) ?? []) : [];
      return first !== undefined && !existsSync(first);
    });
}

/** Events that decide nothing: they are recorded as spans. Same rows as `shim/front/events.c`. */
type Kind = EventRequest["event"];

const EVENTS: ReadonlyMap<unknown, Kind> = new Map<unknown, Kind>([
  ["SessionStart", "session_start"],
  ["SessionEnd", "session_end"],
  ["UserPromptSubmit", "prompt"],
  ["BeforeAgent", "prompt"],
  ["Stop", "stop"],
  ["AfterAgent", "stop"],
  ["PostToolUse", "tool"],
  ["AfterTool", "tool"],
]);

/** Fields of the request, and of an event. */
const FIELDS: Readonly<Record<Kind, Readonly<Record<string, string>>>> = {
  session_start: { reason: "source" },
  session_end: { reason: "reason" },
  prompt: { prompt: "prompt" },
  stop: {},
  tool: { tool: "tool_name", tool_use_id: "tool_use_id" },
};

/** The kind of such an event, as `POST /v1/events` takes it; undefined for every other event. */
function eventKind(event: unknown): Kind | undefined {
  return isObject(event) ? EVENTS.get(event["hook_event_name"]) : undefined;
}

/** The body of `POST /v1/events`. Throws `Blocked` for fields of a wrong type. */
function toldOf(agent: Agent, event: unknown, kind: Kind): object {
  const fields = isObject(event) ? event : {};
  const session = sessionKey(fields["session_id"]);
  const texts = Object.entries(FIELDS[kind]).flatMap(([to, from]) => {
    const text = fields[from];
    return typeof text === "string" && text !== "" ? [[to, text] as const] : [];
  });
  return {
    agent_id: agent.name,
    cwd: folderOf(agent, fields),
    event: kind,
    ...(session === undefined ? {} : { session_key: session }),
    ...Object.fromEntries(texts),
    ...(kind === "tool" ? openedBy(agent, fields) : {}),
  };
}

function openedBy(agent: Agent, { tool_name: name, tool_input: input }: Record<string, unknown>): object {
  const tool = typeof name === "string" ? toolOf(agent, name, input) : undefined;
  if (tool === undefined || (tool.kind !== "files" && tool.kind !== "patch")) return {};
  // Only a question says how the tool takes a name.
  const { finds: _finds, ...plain } = tool;
  return { files: filesOf({ tool: plain, toolName: String(name), input: isObject(input) ? input : {} }) };
}
