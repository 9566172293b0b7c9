/** Between an editor and an agent: what each message is, and who answers it. */
import { Displays } from "./displays.ts";
import { readTextFile, writeTextFile } from "./files.ts";
import type { LineWriter } from "./lines.ts";
import {
  CANCELLED,
  type Fields,
  fieldsOf,
  INVALID_PARAMS,
  type Message,
  messageOf,
  Refused,
  refusedFor,
  withoutLoginCommands,
} from "./messages.ts";
import { denial, judged, passed, shown, textBlock } from "./permissions.ts";
import { type AskPerson, isQuestionOfOurs, Questions } from "./questions.ts";
import { Sessions } from "./sessions.ts";
import { fenced, Terminals } from "./terminals.ts";
import type { Whose } from "./whose.ts";

export type ProxyOptions = {
  readonly whose: Whose;
  readonly ask: AskPerson;
  /** Tells the person who started the proxy. */
  readonly complain: (text: string) => void;
};

export class Proxy {
  readonly #options: ProxyOptions;
  readonly #editor: LineWriter;
  readonly #agent: LineWriter;
  readonly #sessions = new Sessions();
  readonly #terminals: Terminals;
  readonly #displays: Displays;
  readonly #questions: Questions;
  /** The agent's requests that are being answered here. */
  readonly #running = new Map<unknown, AbortController>();

  constructor(options: ProxyOptions, editor: LineWriter, agent: LineWriter) {
    const { whose } = options;
    this.#options = options;
    this.#editor = editor;
    this.#agent = agent;
    this.#questions = new Questions(options.ask, (message) => editor.send(message));
    this.#terminals = new Terminals(whose, {
      asked: (terminal, approval) => this.#questions.put(terminal, approval),
      changed: (terminal) => this.#displays.changed(terminal),
    });
    this.#displays = new Displays(this.#terminals, (message) => {
      if (editor.isBehind) return false;
      editor.send(message);
      return true;
    });
  }

  /** Takes a line of the editor's. */
  async fromEditor(line: Buffer): Promise<void> {
    const message = messageOf(line);
    if (message !== undefined && this.#questions.take(message)) return;
    if (message?.method === "initialize" && message.id !== undefined)
      return await this.#agent.pass(Buffer.from(JSON.stringify(withCapabilities(message))));
    if (message?.method !== undefined && message.id !== undefined) this.#sessions.request(message);
    if (message?.method === "session/cancel") this.#terminals.cancel(fieldsOf(message.params)?.["sessionId"]);
    await this.#agent.pass(line);
  }

  /**
   * Takes a line of the agent's. The editor gets it as it was understood here: where a key stands twice, or bytes are not UTF-8, an
   * editor may read another method, and carry it out on the host.
   */
  async fromAgent(line: Buffer): Promise<void> {
    if (line.length === 0 || (line.length === 1 && line[0] === 13)) return;
    const message = messageOf(line);
    if (message === undefined)
      return this.#options.complain(
        `The agent sent a line that is no message: ${line.subarray(0, 200).toString()}`,
      );
    const { id, method, params } = message;
    // An editor that looks handlers up by key may take a list of one text for that text.
    if (method !== undefined && typeof method !== "string")
      return this.#options.complain("The agent sent a message whose method is no text");
    if (method === undefined) {
      this.#sessions.answer(message);
      return await this.#passAnswer(message);
    }
    if (/^(?:terminal|fs)\//.test(method)) {
      await this.#agent.ready();
      // Without an id nobody waits for an answer, and nothing is done.
      return id === undefined ? undefined : void this.#answered(id, method, fieldsOf(params) ?? {});
    } else if (id === undefined) return await this.#notified(message);
    else if (method === "session/request_permission")
      return await this.#permission(message, fieldsOf(params) ?? {});
    await this.#pass(message);
  }

  /** Ends every command. */
  end(): void {
    this.#terminals.end();
    this.#displays.end();
  }

  async #passAnswer(answer: Message): Promise<void> {
    const { message, dropped } = withoutLoginCommands(answer);
    if (dropped)
      this.#options.complain(
        "The agent offers a log-in that the editor would run on this machine outside every world. Log in with the agent in a terminal",
      );
    await this.#pass(message);
  }

  async #pass(message: object): Promise<void> {
    await this.#editor.pass(Buffer.from(JSON.stringify(message)));
  }

  async #notified(message: Message): Promise<void> {
    const { method, params } = message;
    const fields = fieldsOf(params) ?? {};
    if (method === "$/cancel_request" && this.#running.has(fields["requestId"]))
      return this.#running.get(fields["requestId"])?.abort();
    const update = fieldsOf(fields["update"]);
    const isToolCall = method === "session/update" && update?.["toolCallId"] !== undefined;
    if (!isToolCall || update === undefined) return await this.#pass(message);
    if (isQuestionOfOurs(update["toolCallId"])) return;
    const { sessionId } = fields;
    this.#sessions.toolCall(sessionId, update);
    const content = this.#displays.replaced(sessionId, update["toolCallId"], update["content"]);
    if (content === undefined) return await this.#pass(message);
    await this.#pass({ jsonrpc: "2.0", method, params: { ...fields, update: { ...update, content } } });
  }

  async #answered(id: unknown, method: string, params: Fields): Promise<void> {
    const running = new AbortController();
    this.#running.set(id, running);
    const cancelled = new Promise<never>((_resolve, reject) => {
      running.signal.addEventListener("abort", () => reject(new Refused(CANCELLED, "Request cancelled")));
    });
    try {
      const result = await Promise.race([this.#carriedOut(method, params, running.signal), cancelled]);
      this.#agent.send({ jsonrpc: "2.0", id, result });
    } catch (error) {
      const { code, message, data } = refusedFor(error);
      this.#agent.send({
        jsonrpc: "2.0",
        id,
        error: { code, message, ...(data === undefined ? {} : { data }) },
      });
    } finally {
      this.#running.delete(id);
    }
  }

  async #carriedOut(method: string, params: Fields, signal: AbortSignal): Promise<object> {
    const cwd = this.#sessions.folderOf(params["sessionId"]);
    if (cwd === undefined)
      throw new Refused(INVALID_PARAMS, "'sessionId' names no session that was opened here");
    switch (method) {
      case "fs/read_text_file":
        return await readTextFile(this.#options.whose, params, cwd, signal);
      case "fs/write_text_file":
        return await writeTextFile(this.#options.whose, params, cwd, signal);
      case "terminal/create":
        return await this.#terminals.create(params, cwd, signal);
      case "terminal/output":
      case "terminal/wait_for_exit":
      case "terminal/kill":
      case "terminal/release":
        return await this.#terminals.use(method, params);
      default:
        // Not passed on: it would be carried out on the host.
        throw new Refused(-32_601, `Method not found: ${method}`);
    }
  }

  async #permission(message: Message, params: Fields): Promise<void> {
    const { id } = message;
    const { sessionId } = params;
    const asked = fieldsOf(params["toolCall"]) ?? {};
    const { toolCallId } = asked;
    if (isQuestionOfOurs(toolCallId))
      return this.#agent.send({ jsonrpc: "2.0", id, result: { outcome: { outcome: "cancelled" } } });
    const known = this.#sessions.toolCall(sessionId, asked);
    const before = this.#displays.contentOf(sessionId, toolCallId);
    const content =
      this.#displays.replaced(sessionId, toolCallId, asked["content"]) ??
      (Array.isArray(asked["content"]) ? (asked["content"] as readonly unknown[]) : before);
    const cwd = this.#sessions.folderOf(sessionId);
    const verdict = await judged(this.#options.whose, known, cwd);
    if (verdict.do !== "deny") {
      const words = verdict.do === "pass" ? passed(params, known) : shown(params, known, content, verdict);
      return this.#editor.send({ jsonrpc: "2.0", id, method: "session/request_permission", params: words });
    }
    const why = textBlock(fenced([`Substrate: ${verdict.title}`, ...verdict.lines].join("\n")));
    const update = { sessionUpdate: "tool_call_update", toolCallId, content: [...content, why] };
    this.#editor.send({ jsonrpc: "2.0", method: "session/update", params: { sessionId, update } });
    this.#agent.send({ jsonrpc: "2.0", id, result: denial(params, verdict) });
  }
}

/** The broker can do terminals and files, whatever the editor can. */
function withCapabilities(message: Message): object {
  const params = fieldsOf(message.params) ?? {};
  const capabilities = fieldsOf(params["clientCapabilities"]) ?? {};
  const fs = { ...fieldsOf(capabilities["fs"]), readTextFile: true, writeTextFile: true };
  return { ...message, params: { ...params, clientCapabilities: { ...capabilities, fs, terminal: true } } };
}
