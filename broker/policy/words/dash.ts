import type { BraceExpansionPart, Command, HereDoc, Redirection, SyntaxNode } from "unbash";

/** A replacement of equal length at offset `at`, so that all other offsets stay valid. */
export interface Patch {
  readonly at: number;
  readonly text: string;
}

/** `dd of=~/x`: dash leaves the `~` alone. */
const ASSIGNED_TILDE = /^[A-Za-z_][A-Za-z0-9_]*\+?=(?=~)/;

/**
 * Returns the patches with which bash's grammar reads a text as dash does, for texts where dash and bash read different commands.
 * The policy judges both readings, since `/bin/sh` is either. A character that dash reads as a plain letter is replaced by a mark
 * ({@link markFor}).
 *
 * Left out on purpose: text that dash rejects as a syntax error (`<( )`, `|&`, `<<<`, arrays) and therefore never runs, and
 * `function` and `select`, whose bodies dash and bash read alike.
 *
 * @param text the text that the node's offsets refer to.
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

/** Delimiters that every shell ends alike: a plain word, or a word quoted as a whole. */
const PLAIN_DELIMITER = /^([\w.,:+%@=/!^~*?-]+|\$?'[^'\\\n]*'|\$?"[^"\\$`\n]*"|\\[\w.-]+)$/;

export function isOddDelimiter(written: string): boolean {
  return written !== "" && !PLAIN_DELIMITER.test(written);
}

/** dash ends `<<$'E'` at `$E`; bash ends the equally long `<<'$E'` there. */
function delimiterPatch({ delimiter }: HereDoc): Patch[] {
  const written = delimiter?.text ?? "";
  if (delimiter === undefined || !/^\$['"]/.test(written) || isOddDelimiter(written)) return [];
  return [{ at: delimiter.pos, text: `${written[1] ?? ""}$` }];
}

/** dash reads `{fd}`, or a number of more than one digit, as a word before a plain redirect. */
function descriptorPatch({ descriptor }: Redirection, text: string): Patch[] {
  if (descriptor === undefined) return [];
  if (descriptor.type === "FileDescriptorVariable") return [marked(descriptor.pos, "{")];
  const long = descriptor.end - descriptor.pos > 1;
  return long ? [marked(descriptor.pos, text[descriptor.pos] ?? "0")] : [];
}

function marked(at: number, char: string): Patch {
  return { at, text: markFor(char) };
}

/** Returns patches for all braces, nested braces included, but not for those of an expansion inside. */
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
 * Private-use characters for `$`, `{` and similar in a text read as dash: the parser takes each mark for a letter. A mark minus
 * 0xE000 is the original character. A text with such characters of its own is misread in the dash reading and read correctly in
 * the bash reading; both are judged.
 */
const BASE = 0xe000;
const MARKS = /[\ue000-\ue07f]/;
const EACH_MARK = new RegExp(MARKS, "g");

/** The mark for an ASCII character. */
export function markFor(char: string): string {
  return String.fromCharCode(BASE + char.charCodeAt(0));
}

/** Returns the text with every mark replaced by its original character. */
export function unmarked(text: string): string {
  return MARKS.test(text)
    ? text.replaceAll(EACH_MARK, (mark) => String.fromCharCode(mark.charCodeAt(0) - BASE))
    : text;
}
