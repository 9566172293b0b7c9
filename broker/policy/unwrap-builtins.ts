import type { CommandWord } from "./command.ts";
import type { Inner } from "./inner.ts";

/** Builtins of bash that take a word for arithmetic, or for the name of a variable: a subscript in it is expanded. */
const ARITHMETIC: ReadonlySet<string> = new Set(
  "let test [ printf read unset declare typeset local export readonly wait getopts mapfile readarray".split(
    " ",
  ),
);
/** `a[$(x)]`: bash runs x when it takes this text, quoted or not, for a number or a variable. */
const SUBSCRIPT = /[A-Za-z_]\w*\[[^\]]*(\$\(|`)/;
const SUBSTITUTION = /\$\(|`/;

/** What a builtin runs of words that look like mere text. */
export function evaluatedWords(name: string, words: readonly CommandWord[]): Inner[] {
  const pattern = name === "compgen" || name === "complete" ? SUBSTITUTION : SUBSCRIPT;
  if (pattern === SUBSCRIPT && !ARITHMETIC.has(name)) return [];
  return words
    .slice(1)
    .filter((word) => word.kind !== "dynamic" && pattern.test(word.text))
    .map((word) => expanded(word.text));
}

/** The same for a value that is assigned: `x='a[$(y)]'; echo $((x))`. */
export function evaluatedValue(value: CommandWord): Inner[] {
  return value.kind === "literal" && SUBSCRIPT.test(value.text) ? [expanded(value.text)] : [];
}

/** The same inside `[[ … ]]`, given as it is written: its words are not commands, so the text is looked at. */
export function evaluatedTest(text: string): Inner[] {
  const quoted = text.match(/'[^']*'/g) ?? [];
  return quoted.filter((one) => SUBSCRIPT.test(one)).map((one) => expanded(one.slice(1, -1)));
}

function expanded(text: string): Inner {
  return { kind: "script", text: `: ${text}`, shell: "bash" };
}
