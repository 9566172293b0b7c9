/** Coding agents: their events, and which of their tools run commands or open files. Same rows as `shim/front/agents.c`. */
import { isObject } from "../../http/valid-request.ts";

/** A failure: the agent blocks the tool, and shows the model the sentence. */
export class Blocked extends Error {
  override readonly name = "Blocked";
}

type Tool = {
  readonly kind: "shell" | "files" | "patch" | "code";
  readonly access?: "read" | "search" | "write";
  /** Fields of the input: the command, the patch, or paths; lists of paths may be patterns. */
  readonly fields: readonly [string, ...string[]];
  /** Without a path the tool works in the event's folder. */
  readonly here?: true;
};

export type Agent = {
  readonly name: string;
  readonly event: string;
  readonly tools: Readonly<Record<string, Tool>>;
  /** Whether a hook may have the person asked: Codex takes `ask` for an error, after which it runs the tool. */
  readonly asks: boolean;
  readonly background: string;
  readonly folder?: string;
};

/** A tool of an event, with its checked input. */
export type AgentCall = {
  readonly agent: Agent;
  readonly tool: Tool;
  readonly toolName: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly cwd: string;
  /** The agent's own, in the letters of a session_key. */
  readonly session: string | undefined;
};

const SHELL: Tool = { kind: "shell", fields: ["command"] };
const files = (access: "read" | "search" | "write", ...fields: Tool["fields"]): Tool => ({
  kind: "files",
  access,
  fields,
});
const filesHere = (...words: Parameters<typeof files>): Tool => ({ ...files(...words), here: true });

const CLAUDE: Pick<Agent, "event" | "tools" | "background"> = {
  event: "PreToolUse",
  background: "run_in_background",
  tools: {
    Bash: SHELL,
    Monitor: SHELL,
    Read: files("read", "file_path"),
    Write: files("write", "file_path"),
    Edit: files("write", "file_path"),
    MultiEdit: files("write", "file_path"),
    NotebookRead: files("read", "notebook_path"),
    NotebookEdit: files("write", "notebook_path"),
    Grep: filesHere("search", "path"),
    Glob: filesHere("read", "path"),
    LS: filesHere("read", "path"),
    Artifact: files("read", "file_path"),
    Projects: filesHere("read", "local_path"),
    Workflow: filesHere("read", "scriptPath"),
    REPL: { kind: "code", fields: ["code"] },
    PowerShell: { kind: "code", fields: ["command"] },
    apply_patch: { kind: "patch", access: "write", fields: ["command"] },
  },
};

const AGENTS: readonly Agent[] = [
  { ...CLAUDE, name: "claude-code", asks: true },
  { ...CLAUDE, name: "codex", asks: false },
  // Its plugin (api/cli/init/opencode-plugin.ts) sends Claude Code's names.
  { ...CLAUDE, name: "opencode", asks: false },
  {
    name: "gemini",
    event: "BeforeTool",
    asks: false,
    background: "is_background",
    folder: "dir_path",
    tools: {
      run_shell_command: SHELL,
      read_file: files("read", "file_path", "absolute_path"),
      read_many_files: files("search", "include", "paths"),
      write_file: files("write", "file_path"),
      replace: files("write", "file_path"),
      list_directory: filesHere("read", "dir_path", "path"),
      glob: filesHere("read", "dir_path", "path"),
      grep_search: filesHere("search", "dir_path", "path"),
      search_file_content: filesHere("search", "dir_path", "path"),
    },
  },
];

/** The agent that the only word names. Throws {@link Blocked}. */
export function agentNamed(words: readonly string[]): Agent {
  const found = words.length === 1 ? AGENTS.find(({ name }) => name === words[0]) : undefined;
  if (found === undefined)
    throw new Blocked("'substrate hook' takes one agent: claude-code, codex, gemini or opencode");
  return found;
}

/** What an event is about; undefined for a tool that runs no command and opens no file. Throws {@link Blocked}. */
export function agentCall(agent: Agent, event: unknown): AgentCall | undefined {
  const {
    hook_event_name: about,
    tool_name: toolName,
    tool_input: input,
    cwd,
    session_id: session,
  } = isObject(event) ? event : {};
  if (about !== agent.event) throw new Blocked(`The event's 'hook_event_name' must be '${agent.event}'`);
  if (typeof toolName !== "string") throw new Blocked("The event's 'tool_name' must be text");
  const tool = Object.hasOwn(agent.tools, toolName) ? agent.tools[toolName] : undefined;
  if (tool === undefined) return undefined;
  if (tool.kind === "code")
    throw new Blocked(
      `${toolName} runs code that no policy can judge, outside every world. Use a shell command`,
    );
  if (!isObject(input)) throw new Blocked("The event's 'tool_input' must be an object");
  return { agent, tool, toolName, input, cwd: folderOf(cwd), session: sessionKey(session) };
}

/** Throws {@link Blocked}. */
export function folderOf(cwd: unknown): string {
  if (typeof cwd !== "string" || !cwd.startsWith("/"))
    throw new Blocked("The event's 'cwd' must be an absolute path");
  return cwd;
}

/** Bytes other than the letters of a session_key become '_'. */
export function sessionKey(id: unknown): string | undefined {
  if (typeof id !== "string" || id === "") return undefined;
  const key = Buffer.from(id).subarray(0, 128).toString("latin1");
  return key.replace(/[^A-Za-z0-9._:@-]/g, "_");
}

export type AgentCommand = {
  readonly text: string;
  readonly cwd: string;
  readonly timeoutMs: number | undefined;
  readonly keep: boolean;
};

const DAY_MS = 86_400_000;

/** Throws {@link Blocked} for fields of a wrong type. */
export function agentCommand({ agent, tool, input, cwd }: AgentCall): AgentCommand {
  const [field] = tool.fields;
  const text = input[field];
  const keep = input[agent.background] ?? false;
  const timeout = input["timeout"] ?? undefined;
  const folder = (agent.folder === undefined ? undefined : input[agent.folder]) ?? undefined;
  if (typeof keep !== "boolean") throw new Blocked(`'${agent.background}' must be true or false`);
  if (typeof text !== "string" || text === "") throw new Blocked(`'${field}' must be a command`);
  if (text.includes("\0")) throw new Blocked(`'${field}' holds a NUL, which no shell can run`);
  if (timeout !== undefined && !isTime(timeout))
    throw new Blocked("'timeout' must be a whole number of milliseconds, at most a day");
  if (folder !== undefined && typeof folder !== "string")
    throw new Blocked(`'${agent.folder}' must be a path`);
  const place = folder === undefined ? cwd : folder.startsWith("/") ? folder : `${cwd}/${folder}`;
  return { text: Buffer.from(text).toString(), cwd: place, timeoutMs: timeout, keep };
}

function isTime(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= DAY_MS;
}

/** A line of a patch that names a file (the apply_patch tool of Codex). */
const HEAD = /^[ \t\r\v\f]*\*\*\* (?:Add File|Update File|Delete File|Move to):(.*)$/gm;

/** The files that a tool opens, as `POST /v1/check` takes them. Throws {@link Blocked} where the input names none. */
export function filesOf({
  tool,
  toolName,
  input,
}: Pick<AgentCall, "tool" | "toolName" | "input">): readonly object[] {
  const paths = tool.fields.flatMap((field) => {
    const value = input[field] ?? undefined;
    if (value === undefined) return [];
    const all: readonly unknown[] = Array.isArray(value) && value.length > 0 ? value : [value];
    return all.flatMap((one) => {
      if (typeof one !== "string") throw new Blocked(`'${field}' must be text`);
      if (tool.kind === "patch") return [...one.matchAll(HEAD)].map(([, path = ""]) => trimmed(path));
      return [Array.isArray(value) ? beforePattern(one) : one];
    });
  });
  if (paths.length === 0 && tool.here !== true)
    throw new Blocked(`'${tool.fields[0]}' of ${toolName} names no file`);
  return (paths.length === 0 ? ["."] : paths).map((path) => ({ path, access: tool.access }));
}

function trimmed(text: string): string {
  return text.replace(/^[ \t\r\v\f]+|[ \t\r\v\f]+$/g, "");
}

/** A pattern may match everything below its first folders. */
function beforePattern(pattern: string): string {
  const star = pattern.search(/[*?[{]/);
  if (star === -1) return pattern;
  const slash = pattern.slice(0, star).lastIndexOf("/");
  return slash === -1 ? "." : pattern.slice(0, Math.max(slash, 1));
}
