/** What the proxy remembers of a conversation: the folders of its sessions, and its tool calls. */
import { type Fields, fieldsOf, listOf, type Message, textOf } from "./messages.ts";

/** Bounds on remembered requests, sessions and tool calls; the oldest are forgotten first. */
const MAX_KEPT = 512;

/** Longest command that is remembered for a tool call; a longer one cannot be shown to a person. */
const MAX_COMMAND = 1024 * 1024;

/** What a tool call is about, as far as its messages say. */
export type ToolCall = {
  readonly title?: string;
  readonly kind?: string;
  readonly command?: string | readonly string[];
  readonly cwd?: string;
  readonly paths?: readonly string[];
};

export class Sessions {
  readonly #folders = new Map<string, string>();
  /** Folders of requests whose answer will name the session, by request id. */
  readonly #asked = new Map<unknown, string>();
  readonly #calls = new Map<string, ToolCall>();

  /** Every request with a folder opens a session: `session/new`, `session/load`, and their like to come. */
  request({ id, params }: Message): void {
    const { cwd, sessionId } = fieldsOf(params) ?? {};
    if (typeof cwd !== "string" || !cwd.startsWith("/")) return;
    if (typeof sessionId === "string") keep(this.#folders, sessionId, cwd);
    keep(this.#asked, id, cwd);
  }

  answer({ id, result }: Message): void {
    const cwd = this.#asked.get(id);
    if (cwd === undefined) return;
    this.#asked.delete(id);
    const session = fieldsOf(result)?.["sessionId"];
    if (typeof session === "string") keep(this.#folders, session, cwd);
  }

  folderOf(session: unknown): string | undefined {
    return typeof session === "string" ? this.#folders.get(session) : undefined;
  }

  /** Adds what an update says of a tool call; returns all that is known of the call. */
  toolCall(session: unknown, update: Fields): ToolCall {
    const key = JSON.stringify([session, update["toolCallId"]]);
    const { title, kind, rawInput, locations } = update;
    const input = fieldsOf(rawInput) ?? {};
    const command = commandOf(input["command"] ?? input["cmd"]);
    const cwd = textOf(input["cwd"] ?? input["workdir"]);
    const named = [input["file_path"], input["path"], input["abs_path"]].filter(
      (one) => typeof one === "string",
    );
    const paths = [...named, ...listOf(locations).map((one) => fieldsOf(one)?.["path"])].filter(
      (one) => typeof one === "string",
    );
    const call = {
      ...this.#calls.get(key),
      ...(typeof title === "string" ? { title } : {}),
      ...(typeof kind === "string" ? { kind } : {}),
      ...(command === undefined ? {} : { command }),
      ...(cwd === undefined ? {} : { cwd }),
      ...(paths.length === 0 ? {} : { paths: [...new Set(paths)] }),
    };
    keep(this.#calls, key, call);
    return call;
  }
}

function commandOf(value: unknown): ToolCall["command"] {
  const isWords = Array.isArray(value) && value.length > 0 && value.every((word) => typeof word === "string");
  if (typeof value !== "string" && !isWords) return undefined;
  return JSON.stringify(value).length > MAX_COMMAND ? undefined : value;
}

export function keep<K, V>(map: Map<K, V>, key: K, value: V): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > MAX_KEPT && oldest !== undefined) map.delete(oldest);
}
