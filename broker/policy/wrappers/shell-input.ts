import type { CommandWord, SimpleCommand } from "../words/command.ts";
import { baseName } from "../words/inner.ts";
import { isShellName, SHELL_OPTION } from "./shell-table.ts";
import { sedRunsItsInput } from "./unwrap-sed.ts";

const STANDARD_INPUT: ReadonlySet<string> = new Set(["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"]);

/**
 * Whether the command runs the output of the pipe's previous stage: `sh`, `bash -s -- x`, `. /dev/stdin`; not `sh file`. A
 * pattern's `sh` behind a `|` matches such commands.
 */
export function runsItsInput(command: SimpleCommand): boolean {
  const [program] = command.words;
  const name = baseName(program?.text ?? "");
  if (name === "eval") return !isConstantEval(command);
  const script = scriptWord(command.words);
  if (name === "source" || name === ".") return script !== null && isInput(script.word);
  if (name === "sed" || name === "gsed") return sedRunsItsInput(command.words);
  if (!isShellName(name)) return false;
  if (script === null || script.readsInput) return true;
  return script.isString ? script.word.kind !== "literal" : isInput(script.word);
}

/** `bash <(curl x)`, `sh -c "$(curl x)"`, `eval "$(curl x)"`, `bash <<< "$(curl x)"`. */
export function runsItsSubstitutions(command: SimpleCommand): boolean {
  const name = baseName(command.words[0]?.text ?? "");
  if (name === "eval" && !isConstantEval(command)) return true;
  if (name !== "eval" && !isShellName(name) && name !== "source" && name !== ".") return false;
  const fed = command.redirects.some(
    ({ operator, target }) => operator.startsWith("<") && target?.kind !== "literal",
  );
  return fed || scriptWord(command.words)?.word.kind === "dynamic";
}

/** `eval 'x y'`: the reader reads the commands in place, and `eval` does nothing else. */
export function isConstantEval({ words: [program, ...args] }: SimpleCommand): boolean {
  return (
    program?.kind === "literal" && program.text === "eval" && args.every((word) => word.kind === "literal")
  );
}

function isInput(word: CommandWord): boolean {
  return word.kind === "dynamic" || STANDARD_INPUT.has(word.text);
}

interface ScriptWord {
  readonly word: CommandWord;
  /** The string of `-c`, not a file. */
  readonly isString: boolean;
  /** `-s`: the words are arguments, the script is the input. */
  readonly readsInput: boolean;
}

function scriptWord(words: readonly CommandWord[]): ScriptWord | null {
  let isString = false;
  let readsInput = false;
  for (let at = 1; at < words.length; at += 1) {
    const word = words[at];
    if (word === undefined) return null;
    if (!SHELL_OPTION.test(word.text)) return { word, isString, readsInput };
    if (word.text.startsWith("--")) {
      at += /^--(rcfile|init-file)$/.test(word.text) ? 1 : 0;
      continue;
    }
    isString ||= word.text.startsWith("-") && word.text.includes("c");
    readsInput ||= word.text.startsWith("-") && word.text.includes("s");
    at += /[oO]$/.test(word.text) ? 1 : 0;
  }
  return null;
}
