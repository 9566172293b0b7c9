import { type CommandAssignment, type CommandWord, UNKNOWN_MARK } from "../words/command.ts";
import { literalWord } from "../words/read-word.ts";
import { mayBeOption } from "../words/unknown-options.ts";
import type { WrapperOptions } from "./wrapper-table.ts";

const ASSIGNMENT = /^([A-Za-z_][A-Za-z0-9_]*)=/;
/** Any name: env passes the variable on, and bash makes a function of `BASH_FUNC_x%%`. */
const ANY_ASSIGNMENT = /^([^=\0]*)=/;
const NUMBER = /^[+-]?\.?\d/;

/** A wrapper's own words, parsed as the wrapper does. */
export interface WrapperWords {
  /** Index of the program; past the end if absent. */
  readonly program: number;
  /** The command strings of options such as `su -c`. */
  readonly scripts: readonly CommandWord[];
  /** The replacement string of `xargs -I`. */
  readonly replace: string | null;
  /** An option that only shows information: the wrapper runs no program. */
  readonly lookup: boolean;
  /** The wrapper rejects an operand or a number, and runs no program. */
  readonly refused: boolean;
  readonly folder: CommandWord | undefined;
  readonly assignments: readonly CommandAssignment[];
  /** The given letters and long options. */
  readonly given: ReadonlySet<string>;
  /** A word that may vanish, split, or become an option: the program may begin elsewhere. */
  readonly unsure: CommandWord | undefined;
  /** `-n$x`: if x is empty, the next word is the option's value. */
  readonly valueless: CommandWord | undefined;
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

type Reading = Mutable<Omit<WrapperWords, "scripts" | "assignments" | "given">> & {
  readonly scripts: CommandWord[];
  readonly assignments: CommandAssignment[];
  readonly given: Set<string>;
};

export function wrapperWords(words: readonly CommandWord[], options: WrapperOptions): WrapperWords {
  const read: Reading = {
    program: words.length,
    scripts: [],
    replace: null,
    lookup: false,
    refused: false,
    folder: undefined,
    assignments: [],
    given: new Set(),
    unsure: undefined,
    valueless: undefined,
  };
  const assignment = options.assignments === "any" ? ANY_ASSIGNMENT : ASSIGNMENT;
  const operands = [...(options.operands ?? [])];
  let ended = false;
  let at = 1;
  for (; at < words.length && !read.lookup; at += 1) {
    const word = words[at];
    if (word === undefined) break;
    if (!ended && word.text === "--") ended = true;
    else if (!ended && isOption(word, operands.length > 0)) {
      at += readOption(word, words[at + 1], options, read);
      // `env -S 'p a' -b`: the words of the string replace the option, and later words belong to p.
      if (options.splits === true && read.scripts.length > 0) {
        at += 1;
        break;
      }
    } else if (options.assignments !== undefined && assignment.test(word.text))
      read.assignments.push(assigned(word, assignment));
    else {
      const wanted = operands.shift();
      if (wanted === undefined) break;
      if (word.vanishes === true || (!ended && mayBeOption(word))) read.unsure ??= word;
      read.refused ||= word.kind === "literal" && !wanted.test(word.text);
    }
  }
  read.program = at;
  // `x='5 id'; timeout $x`: the program may come from an expansion among the wrapper's own words.
  if (at >= words.length) read.unsure ??= words.find((word, index) => index > 0 && word.vanishes === true);
  return read;
}

function isOption(word: CommandWord, operandsLeft: boolean): boolean {
  return word.text.startsWith("-") || (/^\+(?!\d)/.test(word.text) && operandsLeft);
}

function assigned(word: CommandWord, assignment: RegExp): CommandAssignment {
  const name = assignment.exec(word.text)?.[1] ?? "";
  return { name, value: { ...word, text: word.text.slice(name.length + 1) } };
}

/** Returns the number of following words that belong to the option. */
function readOption(
  word: CommandWord,
  next: CommandWord | undefined,
  options: WrapperOptions,
  read: Reading,
): 0 | 1 {
  return word.text.startsWith("--")
    ? readLong(word, next, options, read)
    : readShort(word, next, options, read);
}

function readLong(
  word: CommandWord,
  next: CommandWord | undefined,
  options: WrapperOptions,
  read: Reading,
): 0 | 1 {
  const equals = word.text.indexOf("=");
  const name = word.text.slice(2, equals < 0 ? undefined : equals);
  if (name.includes(UNKNOWN_MARK)) read.unsure ??= word;
  const value = equals < 0 ? next : { ...word, text: word.text.slice(equals + 1) };
  // getopt accepts unambiguous beginnings of a long option.
  const begins = (full: string): boolean => full.startsWith(name);
  const isScript = (options.scriptLong ?? []).some(begins);
  read.given.add(name);
  if (isScript && value !== undefined) read.scripts.push(value);
  // The value is optional, so never the next word.
  if (options.appends === true && "replace".startsWith(name))
    takeReplace(equals < 0 ? undefined : value, read);
  if (options.folderLong?.startsWith(name) === true) read.folder = value;
  return equals < 0 && (isScript || (options.longValues ?? []).some(begins)) ? 1 : 0;
}

function readShort(
  word: CommandWord,
  next: CommandWord | undefined,
  options: WrapperOptions,
  read: Reading,
): 0 | 1 {
  for (let at = 1; at < word.text.length; at += 1) {
    const letter = word.text[at] ?? "";
    if (letter === "\0") {
      read.unsure ??= word;
      return 0;
    }
    read.given.add(letter);
    if (options.lookups?.includes(letter) === true) {
      read.lookup = true;
      return 0;
    }
    const attached = word.text.slice(at + 1);
    if (letter === "i" && options.appends === true) {
      takeReplace(attached === "" ? undefined : { ...word, text: attached }, read);
      return 0;
    }
    if (options.scriptShort !== letter && options.shortValues?.includes(letter) !== true) continue;
    if (attached === UNKNOWN_MARK) read.valueless ??= word;
    takeValue(letter, attached === "" ? next : { ...word, text: attached }, options, read);
    return attached === "" ? 1 : 0;
  }
  return 0;
}

/** An unknown replacement string may occur anywhere in the command to run. */
function takeReplace(value: CommandWord | undefined, read: Reading): void {
  read.replace = value?.text ?? "{}";
  if (read.replace.includes(UNKNOWN_MARK)) read.unsure ??= value;
}

function takeValue(
  letter: string,
  value: CommandWord | undefined,
  options: WrapperOptions,
  read: Reading,
): void {
  if (options.scriptShort === letter && value !== undefined) read.scripts.push(value);
  if (letter === "I") takeReplace(value, read);
  if (options.folderShort === letter) read.folder = value;
  const isNumber = value === undefined || value.kind !== "literal" || NUMBER.test(value.text);
  if (options.numbers?.includes(letter) === true && !isNumber) read.refused = true;
}

const ADDED = "…";

/** Stands for the words that a wrapper appends to its given words. */
export function addedWords(): CommandWord {
  return { ...literalWord(ADDED), kind: "dynamic", text: "\0?", vanishes: true };
}

/** `xargs xargs x`: the outer and the inner xargs append words at the same place. */
export function endsInAdded(words: readonly CommandWord[]): boolean {
  const last = words.at(-1);
  return last !== undefined && isAdded(last);
}

export function isAdded(word: CommandWord): boolean {
  return word.kind === "dynamic" && word.raw === ADDED;
}
