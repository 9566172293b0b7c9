/** More than a terminal keeps for a program that does not read (4,095 bytes), with what it erases. */
const MOST_KEPT = 16_384;

/** Keys that a person typed for a program, to tell them from what a program says that they typed. */
export class TypedKeys {
  #bytes = Buffer.alloc(0);

  add(bytes: Uint8Array): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes]).subarray(-MOST_KEPT);
  }

  /** Whether the last keys make this text: as they are, with line ends for Enter, or as a terminal edits lines. */
  endsWith(text: string): boolean {
    const typed = this.#bytes.toString("utf8");
    const lines = typed.replaceAll("\r", "\n");
    return typed.endsWith(text) || lines.endsWith(text) || edited(lines).endsWith(text);
  }
}

/** Carries out what a terminal in its usual mode does itself (termios(3), n_tty.c): erases, quotes the next key, and ends input. */
function edited(keys: string): string {
  const text: string[] = [];
  const isInLine = (): boolean => text.length > 0 && text.at(-1) !== "\n";
  let isQuoted = false;
  for (const key of keys) {
    if (isQuoted || !ACTIONS.has(key)) text.push(key);
    else if (key === "\x15") while (isInLine()) text.pop();
    else if (key === "\x17") {
      while (isInLine() && !IN_WORD.test(text.at(-1) ?? "")) text.pop();
      while (isInLine() && IN_WORD.test(text.at(-1) ?? "")) text.pop();
    } else if (key !== "\x04" && key !== "\x16" && isInLine()) text.pop();
    isQuoted = !isQuoted && key === "\x16";
  }
  return text.join("");
}

/** Ctrl-D, both keys that erase a character, Ctrl-U, Ctrl-V and Ctrl-W. */
const ACTIONS: ReadonlySet<string> = new Set(["\x04", "\b", "\x7f", "\x15", "\x16", "\x17"]);
const IN_WORD = /[\p{L}\p{N}_]/u;
