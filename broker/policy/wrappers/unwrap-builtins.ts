import { type CommandWord, UNKNOWN_MARK } from "../words/command.ts";
import { asShellText, type Inner } from "../words/inner.ts";

/** Builtins of bash that evaluate a word as arithmetic or as a variable's name: bash expands a subscript inside. */
const ARITHMETIC: ReadonlySet<string> = new Set(
  "let test [ printf read unset declare typeset local export readonly wait getopts mapfile readarray".split(
    " ",
  ),
);
/** Tests that evaluate their words as arithmetic or as variables' names. */
const EVALUATING_TEST = /\s-(v|R|eq|ne|lt|le|gt|ge)\s/;
const EVALUATED: Inner = {
  kind: "opaque",
  reason: "bash runs substitutions in the subscript of a quoted name",
};
const SUBSTITUTION = /\$\(|`|[<>]\(/;

/** Whether the builtin runs, and the reader reads, subscripts in its words. */
export function evaluates(name: string): boolean {
  return ARITHMETIC.has(name) || name === "[[";
}

/** Returns the commands that a builtin runs from words that look like plain text. */
export function evaluatedWords(name: string, words: readonly CommandWord[]): Inner[] {
  const completes = name === "compgen" || name === "complete";
  if (!completes && !ARITHMETIC.has(name)) return [];
  const runs = (text: string): boolean =>
    completes ? SUBSTITUTION.test(text) : runsInSubscript(text) || (DECLARING.has(name) && runsInArray(text));
  return words.slice(1).flatMap((word) => {
    if (word.kind === "dynamic") {
      // What an unknown part may be besides: nothing, or a letter of a name.
      const isSeen = !completes && runs(word.text.replaceAll(UNKNOWN_MARK, "x"));
      return isSeen || MADE_SUBSTITUTION.test(word.text) ? [LATE_WORD] : [];
    }
    const text = word.kind === "glob" ? word.text.replaceAll("\\", "") : word.text;
    if (!runs(text)) return [];
    return [expanded(text), ...(runsInArray(text) ? [expanded(text.slice(text.indexOf("=(") + 1))] : [])];
  });
}

/** Words whose value bash expands once more, and that are only known when the command runs: `declare -a a="$x"`, `compgen -W "$x"`. */
export function expandsLate(name: string, words: readonly CommandWord[]): boolean {
  const isArray = DECLARING.has(name) && words.some(({ text }) => /^[-+]\w*[aA]/.test(text));
  return words.some((word, at) => {
    if (word.kind !== "dynamic") return false;
    const before = words[at - 1]?.text ?? "";
    if (name === "compgen" || name === "complete") return /^-\w*W$/.test(before) || /^-\w*W/.test(word.text);
    if (DECLARING.has(name)) return isArray && /^\w+\+?=/.test(word.text) && !/^\w+\+?=\(/.test(word.raw);
    // `-v "m[$k]"`, `-v "$(<f)"`: a subscript in a name.
    return TAKES_NAME.has(name) && before === "-v" && /^\0\?|\[.*\0\?/s.test(word.text);
  });
}

/** Builtins with `-v NAME`. */
const TAKES_NAME: ReadonlySet<string> = new Set(["test", "[", "printf"]);

/** Builtins that give variables values; they read `name=(…)` as the values of an array, quoted or not. */
export const DECLARING: ReadonlySet<string> = new Set(["declare", "typeset", "local", "export", "readonly"]);
/** `"a[$x(y)]"` and `"a=($x(y))"` where x is a dollar; `"a[$x y $x]"` where it is a backquote. */
const MADE_SUBSTITUTION =
  /[[=]\(?(?:[^\]()[]{0,500}\0\?\(|[^\][]{0,500}\0\?[^\][]{0,500}[\s<>|][^\][]{0,500}\0\?\])/;
const LATE_WORD: Inner = {
  kind: "opaque",
  reason: "bash expands the word a second time, and what is in it is only known when the command runs",
};

function runsInArray(text: string): boolean {
  return /^\w+(\[[^\]]*\])?\+?=\(/.test(text) && SUBSTITUTION.test(text);
}

/** Returns the commands in an assigned value: `x='a[$(y)]'; echo $((x))`. */
export function evaluatedValue(value: CommandWord): Inner[] {
  const texts = [value, ...(value.otherwise ?? []).flat()].map(({ text }) => text);
  return texts.filter((text) => runsInSubscript(text)).map((text) => expanded(asShellText(text)));
}

/** Returns the commands inside `[[ … ]]`. Searches the source text: words of a test are not commands. */
export function evaluatedTest(text: string): Inner[] {
  const quoted = text.match(/'[^']*'/g) ?? [];
  const found = quoted.filter((one) => runsInSubscript(one)).map((one) => expanded(one.slice(1, -1)));
  if (found.length > 0 || !EVALUATING_TEST.test(text) || !/['"\\]/.test(text)) return found;
  // `-v a'[$(x)]'`: a subscript cut in pieces by quotes.
  const plain = text.slice(2, -2).replaceAll(/\$?['"]|\\/g, "");
  return runsInSubscript(plain) ? [expanded(plain), EVALUATED] : [];
}

function expanded(text: string): Inner {
  return { kind: "script", text: `: ${text}`, shell: "bash" };
}

/**
 * Whether bash runs a substitution in a subscript, as in `a[$(x)]`, when the text, quoted or not, is used as a number or a
 * variable. Reads each character once: values of variables have any length, and a regular expression took a minute for 64 KiB.
 *
 * @param bare the name may stand elsewhere: `x='[$(y)]'; echo $((a$x))`.
 */
export function runsInSubscript(text: string, bare = false): boolean {
  let run = -1;
  let close = -1;
  for (let open = text.indexOf("["); open >= 0; open = text.indexOf("[", open + 1)) {
    if (run < open) run = nextSubstitution(text, open);
    if (run < 0) return false;
    if (close < open) close = indexOrEnd(text, "]", open);
    if (run < close && (bare || /\w/.test(text[open - 1] ?? ""))) return true;
  }
  return false;
}

function nextSubstitution(text: string, from: number): number {
  const next = Math.min(indexOrEnd(text, "$(", from), indexOrEnd(text, "`", from));
  return next === text.length ? -1 : next;
}

function indexOrEnd(text: string, part: string, from: number): number {
  const at = text.indexOf(part, from);
  return at < 0 ? text.length : at;
}
