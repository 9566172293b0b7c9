import { posix } from "node:path";
import { type CommandWord, HOME_MARK, type SimpleCommand } from "../policy/command.ts";
import type { Where } from "../policy/index.ts";

/** A pattern that means one simple command and no other, and the command's words. */
export type ExactPattern = { readonly pattern: string; readonly words: readonly string[] };

/** As `command_pattern` in the schema. */
const MAX_PATTERN = 4096;

/**
 * The pattern of exactly this command, or why there is none: a pattern has no way to say a literal `*`, a quote, a lone
 * `|`, or a word that is known only when it runs. What a person could not read in a review is not proposed either. Pure.
 */
export function exactPattern(command: SimpleCommand, where: Where): ExactPattern | { readonly why: string } {
  const words = command.words.map((word, index) => patternWord(word, index, command, where));
  const unsayable = words.find((word) => "why" in word);
  if (unsayable !== undefined && "why" in unsayable) return unsayable;
  const pattern = words.map((word) => ("why" in word ? "" : word.pattern)).join(" ");
  if (pattern.length > MAX_PATTERN)
    return { why: `it is longer than the ${MAX_PATTERN} characters of a pattern` };
  return { pattern, words: command.words.map(({ text }) => text.replace(HOME_MARK, where.home)) };
}

type PatternWord = { readonly pattern: string } | { readonly why: string };

function patternWord(word: CommandWord, index: number, command: SimpleCommand, where: Where): PatternWord {
  const { kind, text, raw } = word;
  if (kind !== "literal") return { why: `'${raw}' is known only when it runs` };
  const isHome = text.startsWith(HOME_MARK);
  const plain = isHome ? text.slice(HOME_MARK.length) : text;
  const why = unsayableIn(plain, isHome);
  if (why !== undefined) return { why };
  if (index === 0 && plain.includes("/"))
    return programPath(isHome ? `$HOME${plain}` : plain, command, where);
  return { pattern: quoted(isHome ? `$HOME${plain}` : plain) };
}

function unsayableIn(text: string, isHome: boolean): string | undefined {
  // Line breaks, terminal escapes, and marks that show text in another order than it has.
  if (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(text)) return "it holds characters that a review would not show";
  if (/["'*]/.test(text)) return "a pattern cannot say a quote or a literal '*'";
  if (text === "|") return "a pattern cannot say a literal '|'";
  if (!isHome && /^(~|\$HOME|\$\{HOME\}|\$PROJECT|\$\{PROJECT\})(\/|$)/.test(text))
    return `a pattern would take '${text}' for a folder`;
  return undefined;
}

/** A program in a folder is named whole: the same relative path is another program in another project. */
function programPath(text: string, command: SimpleCommand, where: Where): PatternWord {
  if (text.startsWith("/") || text.startsWith("$HOME/")) return { pattern: quoted(text) };
  if (command.moves === null || command.moves.length > 0)
    return { why: `'${text}' is a program of a folder that is entered on the way` };
  const path = posix.resolve(where.cwd, text);
  return {
    pattern: quoted(path.startsWith(`${where.home}/`) ? `$HOME${path.slice(where.home.length)}` : path),
  };
}

function quoted(text: string): string {
  return text === "" || /\s/.test(text) ? `"${text}"` : text;
}
