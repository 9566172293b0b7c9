import { type CommandWord, UNKNOWN_MARK } from "../words/command.ts";
import { type Inner, scriptOf, type ShellLanguage } from "../words/inner.ts";
import { dynamicWord, literalWord } from "../words/read-word.ts";
import { unknownOption } from "../words/unknown-options.ts";
import { addedWords, endsInAdded, type WrapperWords, wrapperWords } from "./wrapper-options.ts";
import type { WrapperOptions } from "./wrapper-table.ts";

/** Returns the command that a wrapper runs, by its table row. */
export function unwrapWrapper(
  words: readonly CommandWord[],
  options: WrapperOptions,
  shell: ShellLanguage,
): Inner[] {
  const own = wrapperWords(words, options);
  return [...unwrapRead(words, own, options, shell), ...unwrapWithoutValue(words, own, options, shell)];
}

/** Returns the command for an empty value of an unknown attached word (`-n$x`). */
function unwrapWithoutValue(
  words: readonly CommandWord[],
  { valueless }: WrapperWords,
  options: WrapperOptions,
  shell: ShellLanguage,
): Inner[] {
  if (valueless === undefined) return [];
  const bare = literalWord(valueless.text.slice(0, -UNKNOWN_MARK.length));
  return unwrapWrapper(
    words.map((word) => (word === valueless ? bare : word)),
    options,
    shell,
  );
}

function unwrapRead(
  words: readonly CommandWord[],
  own: WrapperWords,
  options: WrapperOptions,
  shell: ShellLanguage,
): Inner[] {
  if (own.lookup || own.refused) return [];
  const rest = words.slice(own.program);
  const found =
    own.scripts.length > 0 ? unwrapStrings(words, own, rest, options, shell) : unwrapRest(own, rest, options);
  const { folder } = own;
  const placed =
    folder === undefined
      ? found
      : found.map((inner) => (inner.kind === "opaque" ? inner : { ...inner, folder }));
  if (own.unsure === undefined) return placed;
  const mayRun = found.length > 0 || own.unsure.vanishes === true || mayHoldScript(own.unsure, options);
  if (!mayRun) return placed;
  const { kind, reason, ...doubt } = unknownOption(own.unsure, words[0]?.text ?? "");
  return [...placed, own.unsure.vanishes === true ? { kind, reason } : { kind, reason, ...doubt }];
}

/** `env -"$x"S'p a'`: the unknown option's value may be the command. */
function mayHoldScript(word: CommandWord, { scriptShort, scriptLong }: WrapperOptions): boolean {
  return word.text.startsWith("-") && (scriptShort !== undefined || scriptLong !== undefined);
}

function unwrapRest(own: WrapperWords, rest: readonly CommandWord[], options: WrapperOptions): Inner[] {
  if (rest.length === 0) return runAlone(options);
  if (joins(own, options)) return scriptOf(rest, "sh", "the wrapper");
  const { assignments } = own;
  if (options.appends !== true) return [{ kind: "words", words: rest, assignments }];
  if (own.replace === null)
    return [{ kind: "words", words: endsInAdded(rest) ? rest : [...rest, addedWords()] }];
  const mark = own.replace;
  return [{ kind: "words", words: rest.map((word) => replaced(word, mark)) }];
}

/** Returns the default program of a wrapper without a program. */
function runAlone({ shell, alone }: WrapperOptions): Inner[] {
  if (shell === true) return [{ kind: "words", words: [literalWord("sh")] }];
  return alone === undefined ? [] : [{ kind: "words", words: [literalWord(alone), addedWords()] }];
}

function joins(own: WrapperWords, { joins: letter, unjoins }: WrapperOptions): boolean {
  if (letter === undefined) return false;
  return letter === "" ? !(unjoins ?? []).some((one) => own.given.has(one)) : own.given.has(letter);
}

function unwrapStrings(
  words: readonly CommandWord[],
  own: WrapperWords,
  rest: readonly CommandWord[],
  options: WrapperOptions,
  shell: ShellLanguage,
): Inner[] {
  if (options.splits !== true)
    return own.scripts.flatMap((script) => scriptOf([script], shell, "the option"));
  const split = own.scripts.map((script) => (script.kind === "dynamic" ? null : splitEnvString(script.text)));
  const known = split.filter((one) => one !== null);
  if (known.length === split.length)
    return [
      {
        kind: "words",
        words: [...words.slice(0, 1), ...known.flat(), ...rest],
      },
    ];
  return [
    ...own.scripts.flatMap((script) => scriptOf([script, ...rest], shell, "the option")),
    { kind: "opaque", reason: "The command in the string of 'env -S' is only known when the command runs" },
  ];
}

export function replaced(word: CommandWord, mark: string): CommandWord {
  if (mark === "" || !word.text.includes(mark)) return word;
  return { kind: "dynamic", text: word.text.replaceAll(mark, UNKNOWN_MARK), raw: word.raw };
}

const CONTROLS: Readonly<Record<string, string>> = { f: "\f", n: "\n", r: "\r", t: "\t", v: "\v" };
const BLANK = /[ \t\n\v\f\r]/;

/**
 * Splits the string of `env -S STRING` by env's own rules: `\_` is a blank, `\c` ends the string, `${NAME}` is the only
 * expansion, a word that begins with `#` starts a comment. Null for a string that env rejects. Rules: GNU env's manual,
 * "-S/--split-string syntax".
 */
function splitEnvString(text: string): CommandWord[] | null {
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
  /** Whether the word exists even with unset variables. */
  #whole = false;
  #quote = "";
  ended = false;

  /** Returns how many characters were consumed; null for characters that env rejects. */
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
