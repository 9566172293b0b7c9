/** Reads the commands that GNU sed runs: `e`, `e COMMAND`, and the flag `e` of `s`. No other part of sed's language runs a command. */
import type { CommandWord } from "../words/command.ts";
import { type Inner, scriptOf } from "../words/inner.ts";
import { literalWord } from "../words/read-word.ts";
import { isSubstituted } from "../words/standard-input.ts";

const VALUES = /^-[nErsuzb]*[efl]$/;
const LONG_VALUES: readonly string[] = ["expression", "file", "line-length"];
const STANDARD_INPUT = /^(-|\/dev\/stdin|\/dev\/fd\/.*|\/proc\/[^/]+\/fd\/.*)$/;
const LINES: Inner = {
  kind: "opaque",
  reason: "'sed' runs lines as commands ('e'), and the lines are only known when the command runs",
};
const LATE: Inner = {
  kind: "opaque",
  reason: "The script of 'sed' comes from another command and is only known when the command runs",
};

export function unwrapSed(words: readonly CommandWord[]): Inner[] {
  const { script, isLate } = wordsOfSed(words);
  const { commands, runsLines } = runBySed(script);
  return [
    ...commands.flatMap((text) => scriptOf([wordOf(text)], "sh", "sed")),
    ...(runsLines ? [LINES] : []),
    ...(isLate ? [LATE] : []),
  ];
}

/** Whether sed runs its input as commands: `curl x | sed e`. */
export function sedRunsItsInput(words: readonly CommandWord[]): boolean {
  const { script, files, isLate } = wordsOfSed(words);
  if (isLate) return true;
  const reads = files.length === 0 || files.some(({ text }) => STANDARD_INPUT.test(text));
  return reads && runBySed(script).runsLines;
}

interface SedWords {
  /** The texts of all `-e`, or the first operand. */
  readonly script: string;
  readonly files: readonly CommandWord[];
  /** `-f -`, `-f <(…)`: the script comes from another command. */
  readonly isLate: boolean;
}

function wordsOfSed(words: readonly CommandWord[]): SedWords {
  const scripts: string[] = [];
  const operands: CommandWord[] = [];
  let [isLate, named, isSafe, ended] = [false, false, false, false];
  for (let at = 1; at < words.length; at += 1) {
    const word = words[at];
    if (word === undefined) break;
    if (ended || !/^-./.test(word.text)) operands.push(word);
    else if (word.text === "--") ended = true;
    else {
      const { name, value, takesNext } = optionOf(word, words[at + 1]);
      at += takesNext ? 1 : 0;
      isSafe ||= name === "sandbox";
      named ||= name === "e" || name === "f";
      if (name === "e" && value !== undefined) scripts.push(value.text);
      isLate ||=
        name === "f" && value !== undefined && (isSubstituted(value) || STANDARD_INPUT.test(value.text));
    }
  }
  const [first, ...others] = operands;
  if (isSafe) return { script: "", files: operands, isLate: false };
  return named
    ? { script: scripts.join("\n"), files: operands, isLate }
    : { script: first?.text ?? "", files: others, isLate };
}

interface SedOption {
  /** `e`, `f`, `sandbox`; other values stand for options without a script. */
  readonly name: string;
  readonly value?: CommandWord | undefined;
  readonly takesNext: boolean;
}

function optionOf(word: CommandWord, next: CommandWord | undefined): SedOption {
  const { text } = word;
  if (text.startsWith("--")) {
    const equals = text.indexOf("=");
    const written = text.slice(2, equals < 0 ? undefined : equals);
    const full = [...LONG_VALUES, "sandbox"].find((name) => name.startsWith(written)) ?? "";
    const takesNext = equals < 0 && LONG_VALUES.includes(full);
    const value = equals < 0 ? next : { ...word, text: text.slice(equals + 1) };
    return { name: full === "sandbox" ? full : full.slice(0, 1), value, takesNext };
  }
  if (VALUES.test(text)) return { name: text.slice(-1), value: next, takesNext: true };
  const attached = /^-[nErsuzb]*([ef])(.+)$/s.exec(text);
  if (attached === null) return { name: "", takesNext: false };
  return { name: attached[1] ?? "", value: { ...word, text: attached[2] ?? "" }, takesNext: false };
}

interface SedRuns {
  readonly commands: readonly string[];
  readonly runsLines: boolean;
}

const NOTHING: SedRuns = { commands: [], runsLines: false };
/** An address without a regular expression. */
const PLACE = /(?:\d+(?:~\d+)?|\$|[+~]\d+)/y;
const BETWEEN = /[\s;{}]*/y;
const TO_COMMAND = /[\s!]*/y;
/** Up to an unescaped line end. */
const TEXT = /(?:\\.|[^\\\n])*\\?/sy;
const LINE = /[^\n]*/y;
const LABEL = /[ \t]*[^\s;]*/y;
const BLANKS = /[ \t]*/y;
const MANNERS = /[IM]*/y;
const NUMBER = /[ \t]*\d*/y;
/** A bracket expression; a `]` at the beginning belongs to the set. */
const BRACKETS = /\[\^?\]?(?:\[([:.=])[^\]]*?\1\]|[^\]\n])*\]/y;
const FLAGS = /[gpiIMme\d\0?]*/y;

/** Reads a script both ways: since sed 4.9 the delimiter does not end an expression between brackets, and either version may run. */
function runBySed(script: string): SedRuns {
  const runs = [readSed(script, false), ...(script.includes("[") ? [readSed(script, true)] : [])];
  return {
    commands: [...new Set(runs.flatMap(({ commands }) => commands))],
    runsLines: runs.some(({ runsLines }) => runsLines),
  };
}

/** Reads a script's commands. An invalid script runs nothing in sed. An unknown part counts as commands that run nothing. */
function readSed(script: string, brackets: boolean): SedRuns {
  const commands: string[] = [];
  let runsLines = false;
  let at = 0;
  const take = (pattern: RegExp): string => {
    pattern.lastIndex = at;
    const found = pattern.exec(script)?.[0] ?? "";
    at += found.length;
    return found;
  };
  const takeAddress = (): boolean => {
    const mark = script[at] === "/" ? 0 : 1;
    if (script[at] !== "/" && script[at] !== "\\") return take(PLACE) !== "";
    at = behindParts(script, at + mark, 1, brackets);
    if (at >= 0) take(MANNERS);
    return true;
  };
  for (take(BETWEEN); at < script.length; take(BETWEEN)) {
    const isPlaced = takeAddress();
    if (at < 0) return NOTHING;
    take(BLANKS);
    if (isPlaced && script[at] === ",") {
      at += 1;
      take(BLANKS);
      takeAddress();
      if (at < 0) return NOTHING;
    }
    take(TO_COMMAND);
    const name = script[at] ?? "";
    at += 1;
    if ("{};".includes(name)) continue;
    if (":btTv".includes(name)) {
      take(LABEL);
      continue;
    }
    if (name === "#" || "rRwW".includes(name)) take(LINE);
    else if ("aic".includes(name)) take(TEXT);
    else if ("qQlL".includes(name)) take(NUMBER);
    else if (name === "e") {
      const text = take(TEXT).trim();
      if (text === "") runsLines = true;
      else commands.push(text);
    } else if (name === "s" || name === "y") {
      at = behindParts(script, at, 2, brackets && name === "s");
      if (at < 0) return NOTHING;
      const flags = name === "s" ? take(FLAGS) : "";
      runsLines ||= flags.includes("e");
      if (script[at] === "w") take(LINE);
    } else if (!"=dDgGhHnNpPxFz\0?,".includes(name)) return NOTHING;
    if (!/^[ \t]*([\n;}#\0]|$)/.test(script.slice(at, at + 80)) && !"\0?,".includes(name)) return NOTHING;
  }
  return { commands, runsLines };
}

/**
 * Returns the offset behind the parts of `/a/` and `s/a/b/`, with any delimiter; a backslash escapes the delimiter. Negative for
 * parts without an end.
 *
 * @param brackets whether the first part may hold the delimiter between brackets.
 */
function behindParts(script: string, from: number, count: 1 | 2, brackets: boolean): number {
  const mark = script[from];
  let at = from + 1;
  for (let parts = 0; parts < count; at += 1) {
    if (at >= script.length || mark === undefined) return -1;
    const set = brackets && parts === 0 && mark !== "[" && script[at] === "[" ? bracketsAt(script, at) : 0;
    if (set > 0) at += set - 1;
    else if (script[at] === "\\") at += 1;
    else if (script[at] === mark) parts += 1;
  }
  return at;
}

/** Returns the length of `[…]`; 0 without an end. */
function bracketsAt(script: string, at: number): number {
  BRACKETS.lastIndex = at;
  return BRACKETS.exec(script)?.[0].length ?? 0;
}

function wordOf(text: string): CommandWord {
  return text.includes("\0") ? { kind: "dynamic", text, raw: text } : literalWord(text);
}
