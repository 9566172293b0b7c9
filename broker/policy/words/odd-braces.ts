import type { Word, WordPart } from "unbash";

/** Text in which no brace counts. */
const QUOTED = /\\.|'[^']*'|"(?:\\.|[^"\\])*"/gs;
/** `{a.\<newline>.c}` */
const BROKEN_DOTS = /\.(?:\\\n)+\./;
/** Stands for a part of a word that holds no brace. */
const OTHER = "x";

/**
 * Whether bash makes words of the braces in this word that the parser does not see.
 *
 * - A `}` before the first comma ends nothing: `x{}a,b}` is `x}a` and `xb`, so `env {A=}b,sudo} id` runs sudo.
 * - bash looks for braces before it expands `${…}`, and counts those inside: `${x%{}{a,b}` is one word.
 *
 * Rules: `brace_expand` and `brace_gobbler` of bash 5.2, braces.c.
 */
export function hasOddBraces({ text, parts }: Word): boolean {
  if (!text.includes("{")) return false;
  if (BROKEN_DOTS.test(text)) return true;
  if (parts === undefined) return hasLateComma(unquoted(text));
  const plain = parts.map(plainText).join("");
  if (!parts.some(isUneven)) return hasLateComma(plain);
  return plain.includes("{") || parts.some(({ type }) => type === "BraceExpansion");
}

function plainText(part: WordPart): string {
  return part.type === "Literal" ? unquoted(part.text) : OTHER;
}

function unquoted(text: string): string {
  return text.replaceAll(QUOTED, OTHER);
}

function isUneven({ type, text }: WordPart): boolean {
  if (type !== "ParameterExpansion") return false;
  const plain = unquoted(text);
  return plain.split("{").length !== plain.split("}").length;
}

/** A pair of braces without a comma, and behind it a comma and a `}` that the pair's `{` takes for its own. */
function hasLateComma(text: string): boolean {
  let depth = 0;
  let [isList, isOpen, isLate] = [false, false, false];
  // `{}` at the beginning is a word of its own to bash (`find -exec x {} …`).
  for (const token of text.replace(/^\{\}/, "").match(/[{},]|\.\.(?!\})/g) ?? []) {
    if (token === "{") {
      depth += 1;
      isList &&= depth > 1;
    } else if (token !== "}") {
      isList ||= depth === 1;
      isLate ||= depth === 0 && isOpen && token === ",";
    } else if (depth > 0) {
      depth -= 1;
      isOpen ||= depth === 0 && !isList;
    } else if (isLate) return true;
  }
  return false;
}
