import { type CommandWord, UNKNOWN_MARK } from "./command.ts";
import type { Inner } from "./inner.ts";

/** What may follow the unknown part of a word so that it may still be an option: `$x`, `"$x"c`, not `$x/run.sh`. */
const LETTERS = /^[-+\w]*$/;

/**
 * May this word turn out to be an option, where its program looks for one? `$x/run.sh` and `$x.lock` count as operands: a
 * value that makes an option of them is one that the same command line sets (assigned-options.ts), or nobody's accident.
 */
export function mayBeOption(word: CommandWord): boolean {
  if (word.kind === "glob") return /^[*?[]/.test(word.text);
  if (word.kind !== "dynamic" || !word.text.startsWith(UNKNOWN_MARK)) return false;
  return LETTERS.test(word.text.replaceAll(UNKNOWN_MARK, ""));
}

/** `-$x`, `-e$x`, `--ex$x=y`: an option whose name is not known. A value behind a `=` may be unknown. */
export function hasUnknownName(word: CommandWord): boolean {
  if (word.kind !== "dynamic" || !/^[-+]/.test(word.text)) return false;
  return (word.text.split("=", 1)[0] ?? "").includes(UNKNOWN_MARK);
}

/** A name, a number or a sign behind a `$`. */
const REFERENCE = /\$\{?[!#]?([A-Za-z_]\w*|[@*\d])/g;

/**
 * For the person who asks why: which word, and what it decides. A plain variable that nothing in the command sets comes
 * from the environment, and whoever chose that chose no option for this program: opaque where the command sets it.
 */
export function unknownOption(word: CommandWord, program: string): Inner & { kind: "opaque" } {
  const reason = `'${word.raw}' may be an option of '${program}' and say which command it runs: known only when it runs`;
  const names = [...word.raw.matchAll(REFERENCE)].map((match) => positional(match[1] ?? ""));
  const isSure = names.length === 0 || /\$\(|`/.test(word.raw) || hasUnknownName(word);
  return isSure ? { kind: "opaque", reason } : { kind: "opaque", reason, names };
}

/** All words that a function or a script is given are one name. */
export function positional(name: string): string {
  return /^[@*\d]/.test(name) ? "@" : name;
}

/** May a variable with this value become an option: by itself, or as one of the words that it splits into? */
export function mayMakeOptions(value: string): boolean {
  return /^[-+]|\s/.test(value);
}
