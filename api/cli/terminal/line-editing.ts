/** What Node's line editor lacks beside bash's: pastes of several lines, and prompts after a screen was cleared. */
import { spawnSync } from "node:child_process";
import type { Interface } from "node:readline";

/** The terminal puts a paste in brackets (mode 2004 of xterm). */
const BRACKETS_ON = "\x1b[?2004h";
const BRACKETS_OFF = "\x1b[?2004l";

type Key = { readonly name?: string; readonly sequence?: string };
type OnKey = (text: string | undefined, key: Key) => void;

/**
 * Puts what is pasted into the edited line: no line of a paste runs before Enter, and no tab in it completes a name. A terminal without
 * this mode sends a paste as keys.
 */
export class Pastes {
  readonly #stdin: NodeJS.ReadableStream;
  readonly #out: NodeJS.WritableStream;
  readonly #typing: Interface;
  /** What has come of a paste whose end is missing. */
  #begun: string | undefined;
  /** The editor's own listeners: during a paste its characters are no keys. */
  #others: OnKey[] = [];
  #whenWhole: () => void = () => {};

  constructor(stdin: NodeJS.ReadableStream, out: NodeJS.WritableStream, typing: Interface) {
    this.#stdin = stdin;
    this.#out = out;
    this.#typing = typing;
    stdin.on("keypress", this.#onKey);
    process.once("exit", this.#switchOff);
    out.write(BRACKETS_ON);
  }

  /** Calls a function when no half of a paste is missing: at once, or with the rest. */
  whenWhole(then: () => void): void {
    if (this.#begun === undefined) then();
    else this.#whenWhole = then;
  }

  end(): void {
    this.#restore();
    this.#stdin.off("keypress", this.#onKey);
    process.off("exit", this.#switchOff);
    this.#switchOff();
  }

  readonly #onKey: OnKey = (_text, { name, sequence = "" }) => {
    if (this.#begun === undefined) {
      if (name === "paste-start") this.#begin();
    } else if (name === "paste-end") {
      insertText(this.#typing, harmless(this.#begun));
      this.#restore();
      this.#whenWhole();
    } else {
      this.#begun += sequence;
    }
  };

  readonly #switchOff = (): void => void this.#out.write(BRACKETS_OFF);

  #begin(): void {
    this.#begun = "";
    this.#others = (this.#stdin.listeners("keypress") as OnKey[]).filter((other) => other !== this.#onKey);
    for (const other of this.#others) this.#stdin.off("keypress", other);
  }

  #restore(): void {
    for (const other of this.#others.splice(0)) this.#stdin.on("keypress", other);
    this.#begun = undefined;
  }
}

/** Without control characters but tab and line feed: the editor shows its line as it is, so an escape sequence could hide a command. */
function harmless(pasted: string): string {
  // oxlint-disable-next-line no-control-regex
  return pasted.replace(/\r\n?/g, "\n").replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "");
}

/** Inserts text at the cursor. The editor's own `write()` would take a line feed for Enter. */
export function insertText(typing: Interface, text: string): void {
  const { line, cursor } = typing;
  Object.assign(typing, {
    line: line.slice(0, cursor) + text + line.slice(cursor),
    cursor: cursor + text.length,
  });
  typing.prompt(true);
}

/**
 * Calls a function with each line that Enter ends, as it was edited: since Node 24 the editor gives the lines of a paste in another
 * order, with carriage returns.
 */
export function onLines(
  stdin: NodeJS.ReadableStream,
  typing: Interface,
  take: (line: string) => unknown,
): void {
  let edited = "";
  const look = (): void => {
    edited = typing.line;
  };
  stdin.prependListener("keypress", look);
  typing.once("close", () => stdin.off("keypress", look));
  typing.on("line", () => take(edited));
}

/**
 * Begins a line unless the cursor is at the beginning of one. Where the cursor is, only the terminal knows: a program may have cleared
 * the screen, or gone back from a screen of its own. Blanks for one whole line wrap to the next line, except from a line's beginning.
 */
export function toLineBegin(columns: number): string {
  return `${" ".repeat(columns)}\r\x1b[K`;
}

/** Whether bash would read on: it reads the text without running it (`-n`), on this side. */
export function isUnfinished(command: string): boolean {
  if (/(?:^|[^\\])(?:\\\\)*\\$/.test(command)) return true;
  const { stderr, error } = spawnSync("/bin/bash", ["--norc", "--noprofile", "-n", "-c", command], {
    encoding: "utf8",
  });
  return (
    error === undefined &&
    /unexpected (?:end of file|EOF)|here-document .* delimited by end-of-file/.test(stderr)
  );
}
