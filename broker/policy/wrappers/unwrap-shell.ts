import type { CommandWord } from "../words/command.ts";
import { asShellText, type Inner, type Input, type ShellLanguage, scriptOf } from "../words/inner.ts";
import { eatsItsLines } from "../words/misread.ts";
import { isNearShell, SHELL_OPTION } from "./shell-table.ts";
import { isSubstituted } from "../words/standard-input.ts";
import { mayBeOption, unknownOption } from "../words/unknown-options.ts";

const LATE: Inner = { kind: "opaque", reason: "The shell's script is only known when the command runs" };
const STANDARD_INPUT: ReadonlySet<string> = new Set(["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"]);
/** Long options with a value; bash accepts a single dash for long options too. */
const LONG_VALUES = /^--?(rcfile|init-file)$/;
const LONGS =
  /^-(debugger|dump-po-strings|dump-strings|help|login|noediting|noprofile|norc|posix|pretty-print|restricted|verbose|version)$/;
const OPEN_FILE = /^\/(dev\/fd\/|proc\/[^/]+\/(task\/[^/]+\/)?fd\/)/;

/** Reads `sh [options] -c STRING`, `sh FILE`, and a shell with its script on standard input. */
export function unwrapShell(
  words: readonly CommandWord[],
  name: string,
  shell: ShellLanguage,
  input: Input,
): Inner[] {
  const own = readOptions(words);
  if (own === null)
    return [{ kind: "opaque", reason: "The shell's options are only known when the command runs" }];
  if (own.shows) return [];
  const found = [...scriptsOf(words, own, shell, input), ...unsureOf(words, own), ...interactive(own, input)];
  const near: Inner = {
    kind: "opaque",
    reason: `'${name}' reads some commands differently from sh and bash, so the check may miss some`,
  };
  return isNearShell(name) ? [...found, near] : found;
}

interface ShellWords {
  readonly operand: number;
  readonly isString: boolean;
  readonly fromInput: boolean;
  /** `--version`: the shell runs no command. */
  readonly shows: boolean;
  /** The file of `--rcfile`. */
  readonly startFile: CommandWord | undefined;
  /** `-i` or `-H`: `!` in the input may recall earlier lines. */
  readonly history: boolean;
  /** The options ended for certain (`--`). */
  readonly ended: boolean;
}

/** Returns null for an unknown option. */
function readOptions(words: readonly CommandWord[]): ShellWords | null {
  let [isString, fromInput, shows, history, ended] = [false, false, false, false, false];
  let startFile: CommandWord | undefined;
  let at = 1;
  for (; at < words.length; at += 1) {
    const word = words[at];
    if (word === undefined || !SHELL_OPTION.test(word.text)) {
      // A lone dash ends the options too.
      ended = word?.text === "-";
      at += ended ? 1 : 0;
      break;
    }
    if (word.text === "--") {
      at += 1;
      ended = true;
      break;
    }
    if (word.kind !== "literal") return null;
    const hasValue = LONG_VALUES.test(word.text);
    if (hasValue) startFile = words[(at += 1)];
    if (hasValue || word.text.startsWith("--") || LONGS.test(word.text)) {
      shows ||= /^--?(version|help)$/.test(word.text);
      continue;
    }
    // dash treats `+c` like `-c`.
    if (/^\+.*[cs]/.test(word.text)) return null;
    isString ||= word.text.startsWith("-") && word.text.includes("c");
    fromInput ||= word.text.startsWith("-") && word.text.includes("s");
    // Each `o` takes a word: `-oc posix STRING`.
    const values = word.text.match(/[oO]/g)?.length ?? 0;
    history ||= /^-.*[iH]/.test(word.text) || words.slice(at + 1, at + 1 + values).some(isHistory);
    at += values;
  }
  return { operand: at, isString, fromInput, shows, startFile, history, ended };
}

function scriptsOf(
  words: readonly CommandWord[],
  own: ShellWords,
  shell: ShellLanguage,
  input: Input,
): Inner[] {
  const operand = words[own.operand];
  if (own.isString) return operand === undefined ? [] : scriptOf([operand], shell, "the shell");
  if (operand === undefined || own.fromInput || STANDARD_INPUT.has(operand.text))
    return inputScript(input, shell);
  return isUnknownFile(operand) || isFed(operand, input) ? [LATE] : [];
}

/** `sh $x- <<< …`, `. /dev/std$x <<< …`: text given to a shell may be meant as its script. */
function isFed(file: CommandWord, input: Input): boolean {
  const isOpen = file.kind !== "literal" || /stdin|fd\//.test(file.text);
  return isOpen && input !== null && input !== "file";
}

function isHistory(word: CommandWord): boolean {
  return word.text.startsWith("hist") || word.kind !== "literal";
}

/** Returns doubts about a word or start file: `sh "$x" STRING` is a file and its argument, or `-c` and a script; `--rcfile <(…)`. */
function unsureOf(words: readonly CommandWord[], own: ShellWords): Inner[] {
  const operand = words[own.operand];
  const early = own.startFile !== undefined && isUnknownFile(own.startFile) ? [LATE] : [];
  const isLast = own.operand === words.length - 1;
  if (operand === undefined || own.isString || own.ended || isLast || !mayBeOption(operand)) return early;
  const { kind, reason, ...doubt } = unknownOption(operand, words[0]?.text ?? "");
  // `sh $x -c …`: without the unknown word, `-c` is certainly an option.
  const string = words.slice(own.operand + 1).some((word) => /^-[a-zA-Z]*c/.test(word.text));
  return [...early, operand.vanishes === true && string ? { kind, reason } : { kind, reason, ...doubt }];
}

/** `bash -i <<< '…!!'`: an interactive shell replaces history references in its input by earlier lines. */
function interactive(own: ShellWords, input: Input): Inner[] {
  const named = input !== null && input !== "file" && input.text.includes("!");
  if (!own.history || own.isString || !named) return [];
  return [{ kind: "opaque", reason: "A shell with history replaces '!' in its input by an earlier command" }];
}

/** `. FILE`, `source FILE`. */
export function unwrapSource(words: readonly CommandWord[], shell: ShellLanguage, input: Input): Inner[] {
  const file = words.slice(1).find((word) => word.text !== "--");
  if (file === undefined) return [];
  if (STANDARD_INPUT.has(file.text)) return inputScript(input, shell);
  return isUnknownFile(file) || isFed(file, input) ? [LATE] : [];
}

/** Whether the script comes from another command. A script file on disk counts as a program, and is not read. */
function isUnknownFile(operand: CommandWord): boolean {
  return isSubstituted(operand) || operand.raw === "…" || OPEN_FILE.test(operand.text);
}

function inputScript(input: Input, shell: ShellLanguage): Inner[] {
  if (input === null) return [LATE];
  if (input === "file") return [];
  const script: Inner = { kind: "script", text: asShellText(input.text), shell };
  return input.certain && !eatsItsLines(input.text) ? [script] : [script, LATE];
}
