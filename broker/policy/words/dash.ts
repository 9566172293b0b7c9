import type { BraceExpansionPart, Command, HereDoc, Redirection, SyntaxNode } from "unbash";

/** A text of the same length to put at `at`, so that every offset stays what it was. */
export interface Patch {
  readonly at: number;
  readonly text: string;
}

/** `dd of=~/x`: dash leaves the `~` alone. */
const ASSIGNED_TILDE = /^[A-Za-z_][A-Za-z0-9_]*\+?=(?=~)/;

/**
 * Where dash and bash read one text as different commands, what makes bash's grammar read it as dash does. The policy
 * judges both readings, since `/bin/sh` is either. What is only a letter to dash is replaced by a mark (dash-marks.ts).
 *
 * Left out on purpose: text that dash refuses as a syntax error (`<( )`, `|&`, `<<<`, arrays), which runs nothing, and
 * `function` and `select`, whose bodies are read alike.
 *
 * @param text the text that offsets of the node are about.
 */
export function patchesOf(node: SyntaxNode, text: string): Patch[] {
  switch (node.type) {
    case "AnsiCQuoted":
    case "LocaleString":
      // In dash a backslash does not keep $'…' open: `$'\\'; rm x #'` runs rm.
      return [marked(node.pos, "$")];
    case "BraceExpansion":
      return bracePatches(node);
    case "Assignment":
      return node.append === true || node.index !== undefined ? [marked(node.pos, node.text[0] ?? "a")] : [];
    case "Pipeline":
      return node.prefixes.filter((one) => one.type === "Time").map((one) => marked(one.pos, "t"));
    case "HereDoc":
      return [...delimiterPatch(node), ...descriptorPatch(node, text)];
    case "Redirect":
    case "HereString":
      return descriptorPatch(node, text);
    case "Coproc":
      return [marked(node.pos, "c")];
    case "TestCommand":
      // In dash `[[ a && rm x ]]` is a list of two commands.
      return [marked(node.pos, "["), marked(node.pos + 1, "[")];
    case "ArithmeticCommand":
      // In dash `((rm x))` is a subshell in a subshell.
      return [
        { at: node.pos, text: "( " },
        { at: node.end - 2, text: " )" },
      ];
    case "Command":
      return [...joinedRedirects(node), ...node.args.flatMap((word) => tildePatch(word.text, word.pos))];
    default:
      return [];
  }
}

/** What every shell takes for the same end: a plain word, or one that is quoted as a whole. */
const PLAIN_DELIMITER = /^([\w.,:+%@=/!^~*?-]+|\$?'[^'\\\n]*'|\$?"[^"\\$`\n]*"|\\[\w.-]+)$/;

export function isOddDelimiter(written: string): boolean {
  return written !== "" && !PLAIN_DELIMITER.test(written);
}

/** `<<$'E'` ends at `$E` in dash: as long as `<<'$E'`, which ends there in bash. */
function delimiterPatch({ delimiter }: HereDoc): Patch[] {
  const written = delimiter?.text ?? "";
  if (delimiter === undefined || !/^\$['"]/.test(written) || isOddDelimiter(written)) return [];
  return [{ at: delimiter.pos, text: `${written[1] ?? ""}$` }];
}

/** In dash `{fd}` is a word, and so is a number of more than one digit: what follows it is a plain redirect. */
function descriptorPatch({ descriptor }: Redirection, text: string): Patch[] {
  if (descriptor === undefined) return [];
  if (descriptor.type === "FileDescriptorVariable") return [marked(descriptor.pos, "{")];
  const long = descriptor.end - descriptor.pos > 1;
  return long ? [marked(descriptor.pos, text[descriptor.pos] ?? "0")] : [];
}

function marked(at: number, char: string): Patch {
  return { at, text: markFor(char) };
}

/** Braces within braces too, but none of an expansion that stands in them. */
function bracePatches(node: BraceExpansionPart): Patch[] {
  if (node.parts !== undefined) return [marked(node.pos, "{"), marked(node.end - 1, "}")];
  return [...node.text.matchAll(/[{}]/g)].map((match) => marked(node.pos + match.index, match[0]));
}

function tildePatch(text: string, pos: number): Patch[] {
  const name = ASSIGNED_TILDE.exec(text)?.[0];
  return name === undefined ? [] : [marked(pos + name.length, "~")];
}

/** In dash `a &>b rm x` is `a &` and `>b rm x`. */
function joinedRedirects(node: Command): Patch[] {
  return node.redirects
    .filter((redirect) => redirect.operator.startsWith("&>") && redirect.end < node.end)
    .map((redirect) => ({ at: redirect.pos, text: ";" }));
}

export function patchedForDash(text: string, patches: readonly Patch[]): string {
  // In place: a copy of the text for each of 20,000 patches took half a second.
  const units = text.split("");
  for (const { at, text: part } of patches)
    for (let offset = 0; offset < part.length; offset += 1) units[at + offset] = part[offset] ?? "";
  return units.join("");
}

/**
 * Characters of private use that stand for `$`, `{` and the like in a text that is read as dash reads it, where they mean
 * nothing: the parser takes them for letters. Each stands for the character 0xE000 below it. A text that holds such
 * characters itself is read wrongly in this reading and rightly in the other; both are judged.
 */
const BASE = 0xe000;
const MARKS = /[\ue000-\ue07f]/;
const EACH_MARK = new RegExp(MARKS, "g");

/** The mark for one ASCII character. */
export function markFor(char: string): string {
  return String.fromCharCode(BASE + char.charCodeAt(0));
}

/** The text with its marks taken for what they stand for. */
export function unmarked(text: string): string {
  return MARKS.test(text)
    ? text.replaceAll(EACH_MARK, (mark) => String.fromCharCode(mark.charCodeAt(0) - BASE))
    : text;
}
