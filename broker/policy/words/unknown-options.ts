import { type CommandWord, UNKNOWN_MARK } from "./command.ts";
import type { Inner } from "./inner.ts";

/** Text behind the unknown part of a possible option: `$x`, `"$x"c`, not `$x/run.sh`. */
const LETTERS = /^[-+\w]*$/;

/**
 * Whether this word may become an option where its program looks for options. `$x/run.sh` and `$x.lock` count as operands: a
 * value with options in it is deliberate, or assigned on the same command line (wrappers/setters.ts).
 */
export function mayBeOption(word: CommandWord): boolean {
  if (word.kind === "glob") return /^[*?[]/.test(word.text);
  if (word.kind !== "dynamic" || !word.text.startsWith(UNKNOWN_MARK)) return false;
  return LETTERS.test(word.text.replaceAll(UNKNOWN_MARK, ""));
}

/** `-$x`, `-e$x`, `--ex$x=y`: an option with an unknown name. A value behind a `=` may be unknown. */
export function hasUnknownName(word: CommandWord): boolean {
  if (word.kind !== "dynamic" || !/^[-+]/.test(word.text)) return false;
  return (word.text.split("=", 1)[0] ?? "").includes(UNKNOWN_MARK);
}

/** Variables that a shell sets from the words of commands and tests. */
const SET_BY_SHELL = /^\{?(?:_|OPTARG|BASH_REMATCH|BASH_COMMAND|DIRSTACK|FUNCNAME)\}?$/;
/** `${x#?}`, `${x:1}`, `${x/a/b}`, `${!x}`: a part of the value, or another's. Not `${x:-y}`. */
const CUT = /\$\{(?:!|(?:\w+|[@*])(?:\[[^\]]*\])?(?:[#%/,^@]|:(?![-=?+])))/;
/** A name, a number or a sign behind a `$`. */
const REFERENCE = /\$\{?[!#]?([A-Za-z_]\w*|[@*\d])/g;

/**
 * Tells a person which word is unknown and decides the program. A plain variable that the command does not set comes from the
 * environment, whose author chose no option for this program: opaque only where the command sets the variable.
 */
export function unknownOption(word: CommandWord, program: string): Inner & { kind: "opaque" } {
  const reason = `'${word.raw}' may be an option of '${program}' that runs another command: the value is only known when the command runs`;
  const isCut = CUT.test(word.raw);
  const names = [...word.raw.matchAll(REFERENCE)].map((match) => positional(match[1] ?? ""));
  if (isCut) names.push(...names.map(partOf));
  const isSure =
    names.length === 0 ||
    /\$\(|`|\$\{!/.test(word.raw) ||
    names.some((name) => SET_BY_SHELL.test(name)) ||
    (isCut && /\$\{(?:OLD)?PWD\b/.test(word.raw)) ||
    hasUnknownName(word) ||
    /^[-+]/.test(word.text.replaceAll(UNKNOWN_MARK, ""));
  return isSure ? { kind: "opaque", reason } : { kind: "opaque", reason, names };
}

/** All arguments of a function or script share the name `@`. */
export function positional(name: string): string {
  return /^[@*\d]/.test(name) ? "@" : name;
}

/** Whether a variable with this value may become an option: as a whole, or as a word after splitting. */
export function mayMakeOptions(value: string): boolean {
  return /^[-+]|\s/.test(value);
}

/** The name that stands, among the names of a doubt, for a part of a variable's value: `${x#?}`. */
export function partOf(name: string): string {
  return `{${name}}`;
}
