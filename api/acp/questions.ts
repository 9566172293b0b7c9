/** Questions of the broker about a terminal's command: shown in the editor; answered there only where the person asked for that. */
import { randomUUID } from "node:crypto";
import type { Approval, ApprovalDecision, ApprovalsReply } from "../../schemas/generated/types.ts";
import { withoutGaps } from "../cli/terminal/rows.ts";
import { harmlessLine } from "../cli/terminal/terminal.ts";
import { call } from "../client/client.ts";
import { fieldsOf, type Message } from "./messages.ts";
import { textBlock } from "./permissions.ts";
import { fenced, type Terminal } from "./terminals.ts";

export type AskPerson = {
  /** The operator's socket. */
  readonly control: string;
  /**
   * Whether a yes in the editor counts. Only the person who starts the proxy can say so: the protocol lets an editor answer by its
   * settings, and nothing in the answer tells that from a person's.
   */
  readonly inEditor: boolean;
  readonly describe: (approval: Approval) => readonly string[];
};

const NAMES: Readonly<Record<ApprovalDecision, readonly [kind: string, name: string]>> = {
  once: ["allow_once", "Allow once"],
  session: ["allow_always", "Allow for this session"],
  always: ["allow_always", "Always allow"],
  deny: ["reject_once", "Deny"],
};

/**
 * Whether a tool call is a question of ours, which has the approval's id. An agent that learned the id could show a person a harmless
 * command in its place.
 */
export function isQuestionOfOurs(toolCallId: unknown): boolean {
  return typeof toolCallId === "string" && toolCallId.startsWith("apr_");
}

export class Questions {
  readonly #ask: AskPerson;
  readonly #send: (message: object) => void;
  /** What the editor was asked, by the id of our request. */
  readonly #asked = new Map<string, string>();

  constructor(ask: AskPerson, send: (message: object) => void) {
    this.#ask = ask;
    this.#send = send;
  }

  /** Shows a question; it ends when the command starts or is refused, whoever answered. */
  put(terminal: Terminal, id: string): void {
    this.#put(terminal, id).catch(() => {
      // The list cannot be read, ignoring: 'substrate approvals' shows the question all the same.
    });
  }

  /** Whether a message of the editor's is an answer to a question of ours. The ids are random: no agent can ask under one of them. */
  take({ id, method, result }: Message): boolean {
    if (method !== undefined || typeof id !== "string") return false;
    const approval = this.#asked.get(id);
    if (approval === undefined) return false;
    this.#asked.delete(id);
    const { outcome, optionId } = fieldsOf(fieldsOf(result)?.["outcome"]) ?? {};
    const chosen = Object.keys(NAMES).find((name) => name === optionId);
    const decision = outcome === "selected" ? chosen : undefined;
    const path = `/v1/approvals/${encodeURIComponent(approval)}`;
    call(this.#ask.control, "POST", path, { decision: decision ?? "deny" }).catch(() => {
      // The broker is gone, ignoring: the command's own call ends with it.
    });
    return true;
  }

  async #put(terminal: Terminal, id: string): Promise<void> {
    const { document } = await call(this.#ask.control, "GET", "/v1/approvals");
    const approval = (document as ApprovalsReply).approvals.find((one) => one.approval_id === id);
    if (approval === undefined) return;
    const { session: sessionId } = terminal;
    const lines = this.#ask.describe(approval);
    const here = this.#ask.inEditor
      ? []
      : [`Answer: substrate approve ${id} --once, or substrate deny ${id}`];
    const toolCall = {
      toolCallId: id,
      title: `Substrate: a person must approve this first: ${withoutGaps(harmlessLine(terminal.command.slice(0, 200)))}`,
      kind: "execute",
      status: "pending",
      content: [textBlock(fenced([...lines, ...here].join("\n")))],
    };
    const say = (update: object): void =>
      this.#send({ jsonrpc: "2.0", method: "session/update", params: { sessionId, update } });
    say({ sessionUpdate: "tool_call", ...toolCall });
    const end = (status: string) => (): void =>
      say({ sessionUpdate: "tool_call_update", toolCallId: id, status });
    terminal.started.then(end("completed"), end("failed"));
    if (!this.#ask.inEditor) return;
    const ours = `substrate-${randomUUID()}`;
    const options = approval.offers.map((decision) => {
      const [kind, name] = NAMES[decision];
      return { optionId: decision, kind, name };
    });
    this.#asked.set(ours, id);
    const params = { sessionId, toolCall, options };
    this.#send({ jsonrpc: "2.0", id: ours, method: "session/request_permission", params });
  }
}
