/** Shows the editor our terminals: each content item that names one becomes text, renewed while the command runs. */
import { fieldsOf } from "./messages.ts";
import { textBlock } from "./permissions.ts";
import { keep } from "./sessions.ts";
import type { Terminal, Terminals } from "./terminals.ts";

/** Between two updates of one tool call. */
const UPDATE_MS = 300;

type Display = {
  readonly sessionId: unknown;
  readonly toolCallId: unknown;
  readonly items: readonly unknown[];
};

export class Displays {
  readonly #terminals: Terminals;
  readonly #send: (message: object) => boolean;
  readonly #all = new Map<string, Display>();
  readonly #timers = new Map<string, NodeJS.Timeout>();

  /** @param send sends a message to the editor; false while the editor does not take what was sent before */
  constructor(terminals: Terminals, send: (message: object) => boolean) {
    this.#terminals = terminals;
    this.#send = send;
  }

  /** What the editor is shown of a tool call's content; undefined where no terminal of ours is in it. */
  replaced(sessionId: unknown, toolCallId: unknown, content: unknown): readonly unknown[] | undefined {
    if (!Array.isArray(content)) return undefined;
    const key = JSON.stringify([sessionId, toolCallId]);
    const items = content.map((item) => this.#terminalIn(item) ?? (item as unknown));
    if (!items.some(isTerminal)) {
      this.#all.delete(key);
      return undefined;
    }
    keep(this.#all, key, { sessionId, toolCallId, items });
    return rendered(items);
  }

  /** Renews what shows a terminal, soon. */
  changed(terminal: Terminal): void {
    for (const [key, { items }] of this.#all) {
      if (!items.includes(terminal) || this.#timers.has(key)) continue;
      this.#timers.set(
        key,
        setTimeout(() => this.#renew(key), UPDATE_MS),
      );
    }
  }

  /** What is known of the content that a tool call shows. */
  contentOf(sessionId: unknown, toolCallId: unknown): readonly unknown[] {
    const display = this.#all.get(JSON.stringify([sessionId, toolCallId]));
    return display === undefined ? [] : rendered(display.items);
  }

  end(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }

  #renew(key: string): void {
    this.#timers.delete(key);
    const display = this.#all.get(key);
    if (display === undefined) return;
    const { sessionId, toolCallId, items } = display;
    const update = { sessionUpdate: "tool_call_update", toolCallId, content: rendered(items) };
    if (this.#send({ jsonrpc: "2.0", method: "session/update", params: { sessionId, update } })) return;
    this.#timers.set(
      key,
      setTimeout(() => this.#renew(key), UPDATE_MS),
    );
  }

  #terminalIn(item: unknown): Terminal | undefined {
    const { type, terminalId } = fieldsOf(item) ?? {};
    return type === "terminal" ? this.#terminals.find(terminalId) : undefined;
  }
}

function rendered(items: Display["items"]): readonly unknown[] {
  return items.map((item) => (isTerminal(item) ? textBlock(item.shown()) : item));
}

function isTerminal(item: unknown): item is Terminal {
  return typeof item === "object" && item !== null && "shown" in item && typeof item.shown === "function";
}
