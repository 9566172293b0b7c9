import type { Word, WordPart } from "unbash";

/** Quoted text: braces inside have no effect. */
const QUOTED = /\\.|'[^']*'|"(?:\\.|[^"\\])*"/gs;
/** `{a.\<newline>.c}` */
const BROKEN_DOTS = /\.(?:\\\n)+\./;
/** Placeholder for a part of a word without braces. */
const OTHER = "x";

/**
 * Whether bash expands braces of this word in a way that the parser misses.
 *
 * - A `}` before the first comma ends nothing: `x{}a,b}` is `x}a` and `xb`, so `env {A=}b,sudo} id` runs sudo.
 * - bash looks for braces before expanding `${…}`, and counts the braces inside: `${x%{}{a,b}` is a single word.
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

/** Whether a comma and a `}` behind a pair of braces without a comma belong to the pair's `{`. */
function hasLateComma(text: string): boolean {
  let depth = 0;
  let [isList, isOpen, isLate] = [false, false, false];
  // To bash, `{}` at the beginning is a separate word (`find -exec x {} …`).
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
