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
    return [typed, lines, edited(lines)].some((keys) => keys.endsWith(text));
  }
}

/** Carries out what a terminal in its usual mode does itself (termios(3)): erase a character, a word, or the line. */
function edited(keys: string): string {
  let text = "";
  for (const key of keys) {
    if (key === "\x7f" || key === "\b") text = text.replace(/[^\n]$/u, "");
    else if (key === "\x15") text = text.slice(0, text.lastIndexOf("\n") + 1);
    else if (key === "\x17") text = text.replace(/[^\s]*[^\S\n]*$/u, "");
    else text += key;
  }
  return text;
}
