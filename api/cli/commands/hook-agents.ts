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
  /** Where no file is at a relative path, the tool looks for another one of that name. */
  readonly finds?: true;
  /** It opens a file only where the field names one. */
  readonly mayName?: true;
  /** A text is one path, or several with blanks between them. */
  readonly splits?: true;
  /** The input may be a patch, as text: models of OpenAI edit so in Copilot. */
  readonly takesPatch?: true;
};

export type Agent = {
  readonly name: string;
  readonly event: string;
  readonly tools: Readonly<Record<string, Tool>>;
  /** Whether a hook may have the person asked: Codex takes `ask` for an error, after which it runs the tool. */
  readonly asks: boolean;
  /** Of answers. */
  readonly form: "claude" | "gemini" | "cursor";
  /** The model is shown why only by an answer, also with exit code 2. */
  readonly explainsOnStdout?: true;
  /** What a command leaves to the next one, in the agent's own shell; absent: its folder and its exported variables. */
  readonly keeps?: "folder" | "none";
  /** Fields of a command: whether it goes on by itself (true, or `async`), its time limit in milliseconds. */
  readonly background?: string;
  readonly limit?: string;
  /** Fields of a command's folder: the first one that is not empty. */
  readonly folders?: readonly string[];
  /** A second event with each command as it is about to run, whose hook cannot change it. */
  readonly lastEvent?: string;
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
  /** The agent's `lastEvent`. */
  readonly isLast?: true;
};

const SHELL: Tool = { kind: "shell", fields: ["command"] };
const files = (access: "read" | "search" | "write", ...fields: Tool["fields"]): Tool => ({
  kind: "files",
  access,
  fields,
});
const filesHere = (...words: Parameters<typeof files>): Tool => ({ ...files(...words), here: true });
const filesSplit = (access: "read" | "search"): Tool => ({
  ...filesHere(access, "paths", "path"),
  splits: true,
});

const CLAUDE = {
  event: "PreToolUse",
  form: "claude",
  background: "run_in_background",
  limit: "timeout",
  tools: {
    // Copilot runs the hooks in a project's .claude/settings.json: `path` of Read, Write and Edit is its own, and `paths`.
    Bash: SHELL,
    Monitor: SHELL,
    Read: files("read", "file_path", "path"),
    Write: files("write", "file_path", "path"),
    Edit: files("write", "file_path", "path"),
    MultiEdit: files("write", "file_path"),
    NotebookRead: files("read", "notebook_path"),
    NotebookEdit: files("write", "notebook_path"),
    Grep: filesSplit("search"),
    Glob: filesSplit("read"),
    LS: filesHere("read", "path"),
    Artifact: files("read", "file_path"),
    Projects: filesHere("read", "local_path"),
    Workflow: filesHere("read", "scriptPath"),
    REPL: { kind: "code", fields: ["code"] },
    PowerShell: { kind: "code", fields: ["command"] },
    apply_patch: { kind: "patch", access: "write", fields: ["command"] },
  },
} satisfies Omit<Agent, "name" | "asks">;

/** It ignores `ask`. After its `timeout` a command goes on in the background. */
const CURSOR: Agent = {
  name: "cursor",
  event: "preToolUse",
  lastEvent: "beforeShellExecution",
  form: "cursor",
  asks: false,
  folders: ["cwd", "working_directory"],
  tools: {
    Shell: SHELL,
    Read: files("read", "file_path", "path"),
    Write: files("write", "file_path", "path"),
    Edit: files("write", "file_path", "path"),
    StrReplace: files("write", "file_path", "path"),
    Delete: files("write", "file_path", "path"),
    Grep: filesHere("search", "file_path", "path"),
    List: filesHere("read", "file_path", "path"),
    FetchMcpResource: { ...files("write", "download_path"), mayName: true },
  },
};

const AGENTS: readonly Agent[] = [
  { ...CLAUDE, name: "claude-code", asks: true },
  { ...CLAUDE, name: "codex", asks: false, keeps: "none" },
  // Its plugin (api/cli/init/opencode-plugin.ts) sends Claude Code's names.
  { ...CLAUDE, name: "opencode", asks: false, keeps: "none" },
  {
    name: "gemini",
    event: "BeforeTool",
    form: "gemini",
    asks: false,
    keeps: "none",
    limit: "timeout",
    background: "is_background",
    folders: ["dir_path"],
    tools: {
      run_shell_command: SHELL,
      read_file: files("read", "file_path", "absolute_path"),
      read_many_files: { ...files("search", "include", "paths"), finds: true },
      write_file: files("write", "file_path"),
      replace: { ...files("write", "file_path"), finds: true },
      list_directory: filesHere("read", "dir_path", "path"),
      glob: filesHere("read", "dir_path", "path"),
      grep_search: filesHere("search", "dir_path", "path"),
      search_file_content: filesHere("search", "dir_path", "path"),
    },
  },
  CURSOR,
  {
    name: "copilot",
    event: "PreToolUse",
    form: "claude",
    // With `-p` and in autopilot it takes `ask` for a denial, and says nothing of either.
    asks: false,
    explainsOnStdout: true,
    background: "mode",
    // The names of a hook of `PreToolUse`; with `preToolUse` they are bash, view, create and others.
    tools: {
      Bash: SHELL,
      Read: files("read", "path"),
      Write: files("write", "path"),
      Edit: { ...files("write", "path"), takesPatch: true },
      Grep: filesSplit("search"),
      Glob: filesSplit("read"),
    },
  },
];

/** The agent that the only word names. Throws {@link Blocked}. */
export function agentNamed(words: readonly string[]): Agent {
  const found = words.length === 1 ? AGENTS.find(({ name }) => name === words[0]) : undefined;
  if (found === undefined)
    throw new Blocked(
      "'substrate hook' takes one agent: claude-code, codex, gemini, opencode, cursor or copilot",
    );
  return found;
}

/**
 * The agent that sent the event: Cursor runs the hooks in Claude Code's settings too. Where config.yaml does not name Cursor, the
 * policy of the named agent holds.
 */
export function sender(named: Agent, event: unknown, isListed: (name: string) => boolean): Agent {
  if (!isObject(event) || event["cursor_version"] === undefined) return named;
  return isListed(CURSOR.name) ? CURSOR : { ...CURSOR, name: named.name };
}

/** What an event is about; undefined for a tool that runs no command and opens no file. Throws {@link Blocked}. */
export function agentCall(agent: Agent, event: unknown): AgentCall | undefined {
  const fields = isObject(event) ? event : {};
  const { hook_event_name: about, tool_name: toolName, tool_input: input } = fields;
  const session = sessionKey(fields["session_id"] ?? fields["conversation_id"]);
  if (agent.lastEvent !== undefined && about === agent.lastEvent) {
    const cwd = folderOf(agent, fields);
    return { agent, tool: SHELL, toolName: "Shell", input: fields, cwd, session, isLast: true };
  }
  if (about !== agent.event) throw new Blocked(`The event's 'hook_event_name' must be '${agent.event}'`);
  if (typeof toolName !== "string") throw new Blocked("The event's 'tool_name' must be text");
  const tool = toolOf(agent, toolName, input);
  if (tool === undefined) return undefined;
  if (tool.kind === "code")
    throw new Blocked(
      `${toolName} runs code that no policy can judge, outside every world. Use a shell command`,
    );
  if (tool.takesPatch === true && typeof input === "string") {
    const patch: Tool = { kind: "patch", access: "write", fields: ["tool_input"] };
    const cwd = folderOf(agent, fields);
    return { agent, tool: patch, toolName, input: { tool_input: input }, cwd, session };
  }
  if (!isObject(input)) throw new Blocked("The event's 'tool_input' must be an object");
  return { agent, tool, toolName, input, cwd: folderOf(agent, fields), session };
}

/** Undefined for a tool that runs no command and opens no file. */
export function toolOf(agent: Agent, name: string, input: unknown): Tool | undefined {
  const tool = Object.hasOwn(agent.tools, name) ? agent.tools[name] : undefined;
  const opensNone = tool?.mayName === true && isObject(input) && isEmpty(input[tool.fields[0]]);
  return opensNone ? undefined : tool;
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === "";
}

/** Cursor leaves `cwd` out, or empty, where the tool works in the workspace. Throws {@link Blocked}. */
export function folderOf(
  { form }: Agent,
  { cwd, workspace_roots: roots }: Readonly<Record<string, unknown>>,
): string {
  const isLeftOut = form === "cursor" && (cwd === undefined || cwd === "");
  const folder: unknown = isLeftOut && Array.isArray(roots) ? roots[0] : cwd;
  if (typeof folder !== "string" || !folder.startsWith("/"))
    throw new Blocked("The event's 'cwd' must be an absolute path");
  return folder;
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

/** Whether a command goes on by itself, by the value of its field. */
const WAYS = new Map<unknown, boolean>([
  [undefined, false],
  [false, false],
  ["sync", false],
  [true, true],
  ["async", true],
]);

/** Throws {@link Blocked} for fields of a wrong type. */
export function agentCommand({ agent, tool, input, cwd }: AgentCall): AgentCommand {
  const [field] = tool.fields;
  const text = input[field];
  const given = (name: string | undefined): unknown =>
    (name === undefined ? undefined : input[name]) ?? undefined;
  const keep = WAYS.get(given(agent.background));
  const timeout = given(agent.limit);
  const place = agent.folders?.find((name) => !isEmpty(input[name]));
  const folder = place === undefined ? undefined : input[place];
  if (keep === undefined)
    throw new Blocked(`'${agent.background}' must be true or false, or 'async' or 'sync'`);
  if (typeof text !== "string" || text === "") throw new Blocked(`'${field}' must be a command`);
  if (text.includes("\0")) throw new Blocked(`'${field}' holds a NUL, which no shell can run`);
  if (timeout !== undefined && !isTime(timeout))
    throw new Blocked("'timeout' must be a whole number of milliseconds, at most a day");
  if (folder !== undefined && typeof folder !== "string") throw new Blocked(`'${place}' must be a path`);
  const inside = folder === undefined ? cwd : folder.startsWith("/") ? folder : `${cwd}/${folder}`;
  return { text: Buffer.from(text).toString(), cwd: inside, timeoutMs: timeout, keep };
}

function isTime(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= DAY_MS;
}

/** Behind the head of a line of a patch that names a file (the apply_patch tool of Codex). */
const HEAD = /\*\*\* (?:Add File|Update File|Delete File|Move to):([^\n]*)/y;

/** Most files of one question, and bytes of a path: as `POST /v1/check` takes them. */
const MOST_FILES = 100;
const MOST_PATH = 4095;

/** The paths of a patch. A line of the context may look like a head, and then one file more is judged. */
function patchedFiles(patch: string): readonly string[] {
  const paths: string[] = [];
  for (let at = patch.indexOf("*** "); at >= 0; at = patch.indexOf("*** ", at + 1)) {
    if (!beginsLine(patch, at)) continue;
    HEAD.lastIndex = at;
    const [, path] = HEAD.exec(patch) ?? [];
    if (path !== undefined) paths.push(...patched(path));
    if (paths.length > MOST_FILES) break;
  }
  return paths;
}

/** Whether only blanks stand before a head in its line, of any script, or any sign that some program ends a line at. */
function beginsLine(patch: string, head: number): boolean {
  let hasEnded = false;
  let at = head;
  for (; at > 0 && !isPrinted(patch.charCodeAt(at - 1)); at--) hasEnded ||= patch[at - 1] !== " ";
  return hasEnded || at === 0;
}

function isPrinted(code: number): boolean {
  return code > 0x20 && code < 0x7f;
}

/** The files that a tool opens, as `POST /v1/check` takes them. Throws {@link Blocked} where the input names none. */
export function filesOf({
  tool,
  toolName,
  input,
}: Pick<AgentCall, "tool" | "toolName" | "input">): readonly object[] {
  const finds = tool.finds === true;
  const named = tool.fields.flatMap((field) => {
    const value = input[field] ?? undefined;
    if (value === undefined) return [];
    const all: readonly unknown[] = Array.isArray(value) && value.length > 0 ? value : [value];
    return all.flatMap((one) => {
      if (typeof one !== "string") throw new Blocked(`'${field}' must be text`);
      if (tool.kind === "patch") return patchedFiles(one).map((path) => ({ path, finds }));
      const words = tool.splits === true ? splitAtBlanks(one) : [one];
      return Array.isArray(value)
        ? words.flatMap((word) => patternFiles(word, toolName, finds))
        : words.map((path) => ({ path, finds }));
    });
  });
  if (named.length === 0 && tool.here !== true)
    throw new Blocked(`'${tool.fields[0]}' of ${toolName} names no file`);
  for (const [at, { path }] of named.entries()) {
    if (path.includes("\0"))
      throw new Blocked(`${toolName} names a path with a NUL, which no file's name has`);
    if (Buffer.byteLength(path) > MOST_PATH)
      throw new Blocked(`${toolName} names a path of more than ${MOST_PATH} bytes`);
    if (at >= MOST_FILES)
      throw new Blocked(`${toolName} names more than ${MOST_FILES} files: name fewer at once`);
  }
  return (named.length === 0 ? [{ path: ".", finds }] : named).map((one) => ({
    path: one.path,
    access: tool.access,
    ...(one.finds ? { finds: true } : {}),
  }));
}

const BLANKS = " \t\r\v\f";

/** A program that splits the line at its colons takes the path only to the next one. */
function patched(text: string): readonly string[] {
  // A pattern for both ends takes the square of the blanks between them.
  let [begin, end] = [0, text.length];
  while (begin < end && BLANKS.includes(text.charAt(begin))) begin++;
  while (end > begin && BLANKS.includes(text.charAt(end - 1))) end--;
  const path = text.slice(begin, end);
  const colon = path.indexOf(":");
  return colon === -1 ? [path] : [path, path.slice(0, colon)];
}

/** Copilot takes a text with blanks for one path where that is there, and else for several. */
function splitAtBlanks(text: string): readonly string[] {
  return text.includes(" ") ? [text, ...text.split(" ").filter((part) => part !== "")] : [text];
}

type NamedFile = { readonly path: string; readonly finds: boolean };

/**
 * A pattern may match everything below its first folders. Some take a backslash for a slash, some for the next letter itself, and some
 * take the whole for the name of a file. Throws {@link Blocked} where it may leave those folders.
 */
function patternFiles(pattern: string, toolName: string, finds: boolean): readonly NamedFile[] {
  const star = pattern.search(/[*?[{(\\]/);
  if (star === -1) return [{ path: pattern, finds }];
  const slash = pattern.slice(0, star).lastIndexOf("/");
  const wild = pattern.slice(slash + 1);
  // With a backslash for a slash, or for the next letter itself, as a class of one letter.
  if (climbs(wild.replaceAll("\\", "/")) || climbs(wild.replaceAll(/[\\[\]]/g, "")))
    throw new Blocked(`${toolName} names a pattern with '..' behind a wildcard: name the folder itself`);
  const before = slash === -1 ? "." : pattern.slice(0, Math.max(slash, 1));
  return [
    { path: pattern, finds: false },
    { path: before, finds },
  ];
}

/** Whether a segment, or a word of a group that may become a segment, leads to the parent folder. `(..)name` of Next.js does not. */
function climbs(text: string): boolean {
  const plain = text.replaceAll(/(^|\/)(?:\(\.{1,3}\))+(?=\w)/g, "$1");
  return /(?:^|[/{},()|])\.\.(?:$|[/{},()|])|[{},()|]\.(?:$|[/},)|])/.test(plain);
}
