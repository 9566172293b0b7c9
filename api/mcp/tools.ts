/** The tools: what a model is told of each, and what each calls. All definitions together are kept short (`mcp.test.ts`). */
import type { Tool as Definition } from "@modelcontextprotocol/server";
import type {
  FilesReply,
  HealthReply,
  HeldReply,
  CheckReply,
  Span,
  SpansReply,
  TraceReply,
} from "../../schemas/generated/types.ts";
import { type Answer, call } from "../client/client.ts";
import { umaskField } from "../client/command.ts";
import { bash } from "./bash.ts";
import { changedWords, foundWords, readWords } from "./file-words.ts";
import type { Outputs } from "./outputs.ts";
import { joined, noticeLines, refusalReply, type Reply, SHOWN_TEXT, shortened } from "./replies.ts";

type Args = Readonly<Record<string, unknown>>;

/** One call of a tool. */
export type Turn = {
  readonly signal: AbortSignal;
  /** Tells the client what is going on, if it asked to be told. */
  readonly progress: (words: string) => void;
};

/** What the tools of one connection share. */
export type Mcp = {
  readonly socket: string;
  readonly outputs: Outputs;
  /** How long a call waits for a person. */
  readonly waitMs: number;
  readonly scopes: Map<string, string>; // tokens by a short name
  /** The connection's own: its commands and file operations begin in the folder in which the last command ended. */
  readonly session: { readonly session_key: string };
  /** Whose call it is and where, as a request has it. */
  readonly spot: (args: Args) => Promise<Record<string, unknown>>;
};

type Tool = {
  readonly name: string;
  readonly description: string;
  readonly reads?: true;
  /** By name: a type and a description. A `?` at the end of a name: not required. */
  readonly args: Readonly<Record<string, readonly [type: string, description?: string]>>;
  readonly run: (mcp: Mcp, args: Args, turn: Turn) => Promise<Reply>;
};

const SCOPE = ["string", "a name from request_scopes"] as const;
const SPAN = ["string", "the spn_ id of the command"] as const;
const PATHS = ["string[]", "only these"] as const;

export const TOOLS: readonly Tool[] = [
  {
    name: "bash",
    description:
      "Run a shell command in an isolated world of the project, under a policy. Begins where the last one ended, with its exported variables. Long output is cut in its middle; read on with output.",
    args: {
      command: ["string"],
      "cwd?": ["string"],
      "timeout_ms?": ["integer", "default 120000"],
      "background?": ["boolean", "leave its processes running"],
      "scope?": SCOPE,
    },
    run: bash,
  },
  {
    name: "output",
    description: "Read on in a command's output that was cut.",
    reads: true,
    args: { ref: ["string"], "offset?": ["integer"] },
    run: readOutput,
  },
  {
    name: "read",
    description: "Read lines of a text file.",
    reads: true,
    args: {
      path: ["string"],
      "line?": ["integer", "first line, from 1"],
      "lines?": ["integer", "default 2000"],
      "scope?": SCOPE,
    },
    run: fileTool("read", readWords),
  },
  {
    name: "write",
    description: "Create or replace a whole file.",
    args: { path: ["string"], text: ["string"], "scope?": SCOPE },
    run: fileTool("write", changedWords),
  },
  {
    name: "edit",
    description: "Replace text in a file. old_text must match exactly and once, unless replace_all.",
    args: {
      path: ["string"],
      old_text: ["string"],
      new_text: ["string"],
      "replace_all?": ["boolean"],
      "scope?": SCOPE,
    },
    run: fileTool("edit", changedWords),
  },
  {
    name: "apply_patch",
    description: "Change several files, all or none: a unified diff, or *** Begin Patch … *** End Patch.",
    args: { patch: ["string"], "scope?": SCOPE },
    run: fileTool("patch", changedWords),
  },
  {
    name: "glob",
    description: "Find files by a path pattern such as src/**/*.{ts,tsx}; skips .git and ignored files.",
    reads: true,
    args: {
      pattern: ["string"],
      "path?": ["string", "folder"],
      "all?": ["boolean", "ignored files too"],
      "limit?": ["integer"],
    },
    run: fileTool("glob", foundWords),
  },
  {
    name: "grep",
    description: "Find lines by a POSIX extended regular expression; skips .git and ignored files.",
    reads: true,
    args: {
      pattern: ["string"],
      "path?": ["string", "folder or file"],
      "glob?": ["string", "only such files"],
      "ignore_case?": ["boolean"],
      "fixed?": ["boolean", "pattern is plain text"],
      "names_only?": ["boolean"],
      "limit?": ["integer"],
    },
    run: fileTool("grep", foundWords),
  },
  {
    name: "diff",
    description: "Show the held changes of an isolated command.",
    reads: true,
    args: { span_id: SPAN, "paths?": PATHS },
    run: showDiff,
  },
  {
    name: "apply",
    description: "Apply held changes to the project, where the policy lets an agent.",
    args: { span_id: SPAN, "paths?": PATHS },
    run: changeHeld("apply"),
  },
  {
    name: "discard",
    description: "Drop held changes.",
    args: { span_id: SPAN, "paths?": PATHS },
    run: changeHeld("discard"),
  },
  {
    name: "trace",
    description:
      "Show what a command did: programs, connections, refusals. Without span_id: the last commands.",
    reads: true,
    args: { "span_id?": SPAN },
    run: showTrace,
  },
  {
    name: "request_scopes",
    description:
      "Ask a person for access beyond the policy: net:host:443, fs.read:/path, fs.write:/path. Gives a name for the scope argument of other tools.",
    args: { scopes: ["string[]"], reason: ["string"] },
    run: requestScopes,
  },
  {
    name: "status",
    description: "Show the policy, the isolation and the held changes of this project.",
    reads: true,
    args: {},
    run: showStatus,
  },
];

/** A tool's definition as the protocol has it. */
export function definitionOf({ name, description, reads, args }: Tool): Definition {
  const names = Object.keys(args);
  const properties = Object.entries(args).map(([key, [type, words]]) => {
    const about = words === undefined ? {} : { description: words };
    const shape = type === "string[]" ? { type: "array", items: { type: "string" } } : { type };
    return [key.replace("?", ""), { ...shape, ...about }] as const;
  });
  return {
    name,
    description,
    inputSchema: {
      type: "object",
      properties: Object.fromEntries(properties),
      required: names.filter((key) => !key.endsWith("?")),
    },
    ...(reads === true ? { annotations: { readOnlyHint: true } } : {}),
  };
}

/** Why arguments do not fit a tool; undefined when they do. */
export function misfit({ args }: Tool, given: Args): string | undefined {
  const known = new Map(Object.entries(args).map(([key, [type]]) => [key.replace("?", ""), type]));
  const unknown = Object.keys(given).find((key) => !known.has(key));
  if (unknown !== undefined)
    return `Unknown argument '${unknown}'. Known are: ${[...known.keys()].join(", ")}`;
  const missing = Object.keys(args).find((key) => !key.endsWith("?") && given[key] === undefined);
  if (missing !== undefined) return `The argument '${missing}' is missing`;
  const wrong = [...known].find(([key, type]) => given[key] !== undefined && !isOf(type, given[key]));
  return wrong === undefined ? undefined : `The argument '${wrong[0]}' must be of type ${wrong[1]}`;
}

function isOf(type: string, value: unknown): boolean {
  if (type === "integer") return Number.isInteger(value);
  if (type === "string[]") return Array.isArray(value) && value.every((one) => typeof one === "string");
  return typeof value === type;
}

/** An argument that {@link misfit} has found to be text. */
function wordOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function fileTool(op: string, words: (reply: FilesReply) => string): Tool["run"] {
  return async (mcp, args, { signal }) => {
    const { scope: _scope, ...fields } = args;
    const bounded = op === "read" ? { max_bytes: SHOWN_TEXT } : {};
    const answer = await call(
      mcp.socket,
      "POST",
      "/v1/files",
      {
        ...(await mcp.spot(args)),
        ...mcp.session,
        ...fields,
        ...bounded,
        ...(READS.has(op) ? {} : changing(mcp)),
        op,
      },
      signal,
    );
    if (answer.status !== 200) return refusalReply(answer);
    const reply = answer.document as FilesReply;
    return { text: joined(words(reply), noticeLines(reply.notices, null)) };
  };
}

const READS: ReadonlySet<string> = new Set(["read", "glob", "grep"]);

function changing({ waitMs }: Mcp): object {
  return { ...umaskField(), approval_wait_ms: waitMs };
}

function readOutput(mcp: Mcp, { ref, offset }: Args): Promise<Reply> {
  const output = mcp.outputs.get(wordOf(ref));
  if (output === undefined)
    return Promise.resolve({
      text: `Unknown or no longer kept: '${wordOf(ref)}'. Run the command again, into a file`,
      isError: true,
    });
  const from = typeof offset === "number" && offset > 0 ? offset : 0;
  const { bytes, next } = output.slice(from, PART);
  const end = from + bytes.length;
  const gap = next > end ? `${next - end} bytes are not kept; ` : "";
  const more = next < output.total ? `[${gap}goes on at offset ${next} of ${output.total}]` : "[the end]";
  return Promise.resolve({ text: joined(bytes.toString(), [more]) });
}

/** Bytes of one answer of `output`. */
const PART = 24_000;

async function showDiff(mcp: Mcp, { span_id: span, paths }: Args, { signal }: Turn): Promise<Reply> {
  const query = Array.isArray(paths)
    ? paths.map((path) => `path=${encodeURIComponent(String(path))}`).join("&")
    : "";
  const path = `/v1/diff/${encodeURIComponent(wordOf(span))}${query === "" ? "" : `?${query}`}`;
  const answer = await call(mcp.socket, "GET", path, undefined, signal);
  if (answer.status !== 200) return refusalReply(answer);
  const { changes, patch } = answer.document as {
    changes: readonly { path: string; kind: string; autorun: boolean }[];
    patch: string;
  };
  const lines = changes.map(
    ({ path: name, kind, autorun }) => `${kind} ${name}${autorun ? " (run by tools by themselves)" : ""}`,
  );
  return { text: shortened([...lines, "", patch].join("\n")) };
}

function changeHeld(action: "apply" | "discard"): Tool["run"] {
  return async (mcp, { span_id: span, paths }, { signal }) => {
    const body = paths === undefined ? {} : { paths };
    const answer = await call(
      mcp.socket,
      "POST",
      `/v1/${action}/${encodeURIComponent(wordOf(span))}`,
      body,
      signal,
    );
    if (answer.status !== 200) return refusalReply(answer);
    const { done, left } = answer.document as { done: readonly string[]; left: readonly unknown[] };
    return {
      text: `${action === "apply" ? "Applied" : "Discarded"}: ${done.join(", ")}\n${left.length} left`,
    };
  };
}

async function showTrace(mcp: Mcp, { span_id: span }: Args, { signal }: Turn): Promise<Reply> {
  const { agent_id: agent } = await mcp.spot({});
  const path = span === undefined ? "/v1/spans?limit=40" : `/v1/trace/${encodeURIComponent(wordOf(span))}`;
  const answer = await call(mcp.socket, "GET", path, undefined, signal);
  if (answer.status !== 200) return refusalReply(answer);
  if (span === undefined) {
    const { spans } = answer.document as SpansReply;
    const own = spans.filter(({ agent_id: id, event_type: type }) => id === agent && type !== "exec");
    return { text: own.length === 0 ? "Nothing is recorded yet" : own.map(spanWords).join("\n") };
  }
  const { span: one, children } = answer.document as TraceReply;
  return {
    text: shortened([spanWords(one), ...children.map((child) => `  ${spanWords(child)}`)].join("\n")),
  };
}

function spanWords({
  span_id: id,
  event_type: type,
  cmd,
  exit,
  decision,
  message,
  violation,
  connection,
}: Span): string {
  const what =
    connection === undefined || connection === null
      ? (violation?.subject ?? cmd ?? "")
      : JSON.stringify(connection);
  const end = exit === null ? "" : ` exit ${exit}`;
  return `${id} ${type}${end} ${decision?.verdict ?? ""} ${what.slice(0, 300)}${message === undefined ? "" : ` — ${message}`}`;
}

async function requestScopes(mcp: Mcp, args: Args, { signal, progress }: Turn): Promise<Reply> {
  const body = { ...(await mcp.spot({})), scopes: args["scopes"], reason: args["reason"] };
  const ask = (wait: number): Promise<Answer> =>
    call(mcp.socket, "POST", "/v1/request_scopes", { ...body, wait_ms: wait }, signal);
  const first = await ask(0);
  const { error } = first.document as { error?: { code: string; message: string; approval_id?: string } };
  if (error?.code === "approval_required") progress(`${error.message} (${error.approval_id ?? ""})`);
  const answer = error?.code === "approval_required" && mcp.waitMs > 0 ? await ask(mcp.waitMs) : first;
  if (answer.status !== 200) return refusalReply(answer);
  const {
    scope_token: token,
    scopes,
    expires_at: until,
  } = answer.document as { scope_token: string; scopes: readonly string[]; expires_at: string };
  const name = `scope${mcp.scopes.size + 1}`;
  mcp.scopes.set(name, token);
  return { text: `Granted as "${name}" until ${until}: ${scopes.join(", ")}` };
}

async function showStatus(mcp: Mcp, _args: Args, { signal }: Turn): Promise<Reply> {
  const spot = await mcp.spot({});
  const check = await call(mcp.socket, "POST", "/v1/check", { ...spot, cmd: "true" }, signal);
  if (check.status !== 200) return refusalReply(check);
  const health = (await call(mcp.socket, "GET", "/v1/health", undefined, signal)).document as HealthReply;
  const held = (
    await call(
      mcp.socket,
      "GET",
      `/v1/held?cwd=${encodeURIComponent(String(spot["cwd"]))}`,
      undefined,
      signal,
    )
  ).document as Partial<HeldReply>;
  const { policy_id: policy, decision } = check.document as CheckReply;
  const parts = Object.entries(health.isolation).map(([part, state]) => `${part} ${String(state)}`);
  return {
    text: [
      `agent ${String(spot["agent_id"])}, folder ${String(spot["cwd"])}`,
      `policy ${policy} (${decision.mode})`,
      `isolation: ${parts.join(", ")}`,
      `held changes: ${(held.held ?? []).map(({ span_id: id }) => id).join(", ") || "none"}`,
    ].join("\n"),
  };
}
