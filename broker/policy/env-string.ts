import type { CommandWord } from "./command.ts";
import { dynamicWord, literalWord } from "./read-word.ts";

const CONTROLS: Readonly<Record<string, string>> = { f: "\f", n: "\n", r: "\r", t: "\t", v: "\v" };
const BLANK = /[ \t\n\v\f\r]/;

/**
 * The words of `env -S STRING`, which has rules of its own: `\_` is a blank, `\c` ends it, `${NAME}` is the only
 * expansion, a word that begins with `#` begins a comment. Null for what env refuses. Rules: GNU env's manual, "-S/--split-string syntax".
 */
export function splitEnvString(text: string): CommandWord[] | null {
  const split = new EnvString();
  for (let at = 0; at < text.length && !split.ended; ) {
    const used = split.take(text, at);
    if (used === null) return null;
    at += used;
  }
  return split.words();
}

class EnvString {
  readonly #words: CommandWord[] = [];
  #word: string | null = null;
  #unknown = false;
  /** Whether the word is there even when its variables are not set. */
  #whole = false;
  #quote = "";
  ended = false;

  /** How many characters were used up; null when env would refuse them. */
  take(text: string, at: number): number | null {
    const char = text[at] ?? "";
    if (char === "\\") return this.#escape(text[at + 1] ?? "");
    if (char === "$" && this.#quote !== "'") return this.#variable(text.slice(at));
    if (char === this.#quote) this.#quote = "";
    else if (this.#quote === "" && (char === '"' || char === "'")) {
      this.#quote = char;
      this.#word ??= "";
      this.#whole = true;
    } else if (this.#quote === "" && BLANK.test(char)) this.#end();
    else if (this.#quote === "" && char === "#" && this.#word === null) this.ended = true;
    else this.#add(char);
    return 1;
  }

  /** Null while a quote is open. */
  words(): CommandWord[] | null {
    if (this.#quote !== "") return null;
    this.#end();
    return this.#words;
  }

  #escape(next: string): number | null {
    if (this.#quote === "'" && next !== "\\" && next !== "'") return this.#add("\\", 1);
    if (next === "_" && this.#quote === "") this.#end();
    else if (next === "_") this.#add(" ");
    else if (next === "c" && this.#quote === "") this.ended = true;
    else if (Object.hasOwn(CONTROLS, next)) this.#add(CONTROLS[next] ?? "");
    else if (/["#$'\\]/.test(next)) this.#add(next);
    else return null;
    return 2;
  }

  #variable(rest: string): number | null {
    const written = /^\$\{[A-Za-z_][A-Za-z0-9_]*\}/.exec(rest)?.[0];
    if (written === undefined) return null;
    this.#unknown = true;
    this.#word = (this.#word ?? "") + written;
    return written.length;
  }

  #add(text: string, used = 1): number {
    this.#word = (this.#word ?? "") + text;
    this.#whole = true;
    return used;
  }

  #end(): void {
    if (this.#word !== null) this.#words.push(this.#wordOf(this.#word));
    this.#word = null;
    [this.#unknown, this.#whole] = [false, false];
  }

  #wordOf(written: string): CommandWord {
    if (!this.#unknown) return literalWord(written);
    return this.#whole ? dynamicWord(written) : { ...dynamicWord(written), vanishes: true };
  }
}
