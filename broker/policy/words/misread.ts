import {
  forEachChild,
  type HereDoc,
  type HereString,
  type ParameterExpansionPart,
  type Redirect,
  type Redirection,
  type SyntaxNode,
} from "unbash";

/** In bash, `r$\<newline>"m"` is rm, and `$\<newline>$'a'` the process ID and a plain `a`. */
const BROKEN_DOLLAR = /\$(?:\\\n)+/;
/** `{f\<newline>d}< file`, `3\<newline>< file` */
const BROKEN_DESCRIPTOR = /\{\w*(?:\\\n\w*)+\}[<>]|\d(?:\\\n)+[<>]/;
/** `$$(x)`, `$${x}`: the shell's process ID and plain text; the parser sees the beginning of an expansion. */
const NUMBER_THEN_BRACKET = /\$\$[({]/;
/** `` `x \"a\"` `` */
const ESCAPED_QUOTE_IN_BACKQUOTES = /`[^`]*\\"/;
const SUBSTITUTION = /\$\(|`/;
/** `${x/{a,b}/c}` */
const BRACES = /[^$\\]\{[^{}]*(,|\.\.)/;
/** `a; b`, not the `;;` of a case. */
const LIST = /(?<!;);(?!;)/;
/** The largest `int`. */
const MAX_DESCRIPTOR = 2_147_483_647;
const READS_LINES = /\b(read|select|mapfile|readarray)\b/;

/**
 * Returns why the commands of a node are unknown, or null. Covers spellings that the parser or a shell reads differently from the
 * rest, found by running generated texts in dash and bash (test/corpus/fuzz.mjs). Nobody writes such spellings to get work done.
 *
 * @param text the text that the node's offsets refer to.
 */
export function misread(node: SyntaxNode, text: string): string | null {
  const written = text.slice(node.pos, node.end);
  switch (node.type) {
    case "ParameterExpansion":
      return numberThenBracket(written) ?? oddExpansion(node, written);
    case "BraceExpansion":
      return ESCAPED_QUOTE_IN_BACKQUOTES.test(written)
        ? "Shells disagree about escaped quotes inside backquotes"
        : null;
    case "DoubleQuoted":
      return numberThenBracket(written);
    case "HereDocBody":
      if (node.parts === undefined) return null;
      // The shell joins lines at a backslash before reading the quotes of the substitution.
      return node.parts.some((part) => part.type === "CommandExpansion" && quotesLineEnd(part.text))
        ? "Shells join the lines of a substitution in a here-document, even inside quotes"
        : numberThenBracket(written);
    case "AnsiCQuoted":
      // Since bash 5.2, though its manual does not say so; other readers take the letters as they are.
      if (/\\x\{/.test(written)) return "bash reads '\\x{…}' as the character of that number";
      return written.includes("\\\n")
        ? "Shells disagree whether a backslash before a line end stays in $'…'"
        : null;
    case "CommandExpansion":
    case "ProcessSubstitution":
      if (/^[<>]\(\s*\)$/.test(written))
        return "Shells disagree whether an empty process substitution is a word";
      if (/^`.*<<.*\\\n/s.test(written))
        return "Shells disagree whether backquotes join the lines of a here-document inside";
      // bash 5.2 prints such commands again before running them, and loses a `;` behind a here-document.
      return written.includes("<<") &&
        documentEnds(node).some((end) => LIST.test(lineFrom(text, end, node.end)))
        ? "bash joins the commands behind a here-document in a substitution"
        : null;
    case "Assignment":
      return node.value.type === "Word" && /^\(.*[<>]\(/s.test(node.value.text)
        ? "The array's values are not parsed, because text directly follows the ')'"
        : null;
    case "HereDoc":
      return oddDescriptor(node) ?? oddDocument(node, text);
    case "Redirect":
    case "HereString":
      return oddDescriptor(node) ?? oddTarget(node, text);
    default:
      return null;
  }
}

/** Returns the rest of the line behind the end of a here-document. */
function lineFrom(text: string, from: number, to: number): string {
  return text.slice(from, to).replace(/^\n/, "").replaceAll("\\\n", " ").split("\n", 1)[0] ?? "";
}

/** Returns the ends of all here-documents in the node, at any depth. */
function documentEnds(node: SyntaxNode): readonly number[] {
  const ends: number[] = [];
  const nodes: SyntaxNode[] = [node];
  for (let one = nodes.pop(); one !== undefined; one = nodes.pop()) {
    if (one.type === "HereDoc") ends.push(one.closing?.end ?? one.body.end);
    forEachChild(one, (child) => void nodes.push(child));
  }
  return ends;
}

/** Whether a backslash and a line end stand between single quotes. */
function quotesLineEnd(text: string): boolean {
  const quoted = text.match(/'[^']*'|"(?:\\.|[^"\\])*"|\\./gs) ?? [];
  return quoted.some((part) => part.startsWith("'") && part.includes("\\\n"));
}

function oddExpansion({ operation }: ParameterExpansionPart, written: string): string | null {
  // In some shells and places, quotes inside the braces open and close another level of backslashes.
  if (ESCAPED_QUOTE_IN_BACKQUOTES.test(written))
    return "Shells disagree about escaped quotes inside backquotes";
  if (operation?.type === "Unknown" && SUBSTITUTION.test(written))
    return "Cannot tell where the parameter expansion ends";
  // `"${x-$'…'}"`: the parser sees a quote, a shell only a `$`.
  if (/\$['"]/.test(written) && /[(`]/.test(written))
    return "The meaning of quotes inside a parameter expansion depends on the quotes around the expansion";
  return BRACES.test(written) ? "Braces inside a parameter expansion end the expansion early" : null;
}

function numberThenBracket(written: string): string | null {
  return NUMBER_THEN_BRACKET.test(written) ? "Shells disagree about the bracket behind '$$'" : null;
}

function oddDocument({ operator, pos, delimiter, body, closing, end }: HereDoc, text: string): string | null {
  // An unterminated document at the end of the whole text belongs to its command in every shell.
  if (closing === undefined && (body.end < text.length || operator === "<<-"))
    return "The here-document has no end, and shells disagree which lines belong to it";
  // `cat <<E $(x⏎y)`: dash begins the document at the first line end, even inside a substitution. A second document of the
  // same line begins behind the first document, which was checked already.
  const start = delimiter?.pos ?? end;
  if (/<<\\\n/.test(text.slice(pos, start))) return "The operator '<<' is split over two lines";
  const isFirst = !text.slice(text.lastIndexOf("\n", start) + 1, start - operator.length).includes("<<");
  const line = text.slice(start, body.pos).replaceAll("\\\n", "");
  if (isFirst && line.trimEnd().includes("\n"))
    return "Shells disagree at which line the here-document begins";
  if (text.slice(closing?.pos ?? end, closing?.end ?? end).includes("\\\n"))
    return "Some shells end the here-document at a line that is joined with the next one";
  // `<<-` strips tabs first, so an inner document may end at another line.
  return operator === "<<-" && body.parts !== undefined && body.text.includes("<<")
    ? "Shells disagree where a here-document inside '<<-' ends"
    : null;
}

/** `p 4294967296<x`: a number larger than an `int` is an argument of p in bash. */
function oddDescriptor({ descriptor }: Redirection): string | null {
  return descriptor?.type === "FileDescriptor" && descriptor.value > MAX_DESCRIPTOR
    ? "The number before a redirect is too large for a file descriptor, so bash takes the number as an argument"
    : null;
}

/** `>& -x` closes a descriptor and leaves a word `x`; `>(x)"y"` is a single word, but the parser ends the word at `)`. */
function oddTarget({ operator, target }: Redirect | HereString, text: string): string | null {
  if (target === undefined) return null;
  if (operator.endsWith("&") && /^-./.test(target.text))
    return `bash reads '${operator} ${target.text}' as a closed descriptor and a further word`;
  return /^[<>]\(/.test(target.text) && /^[^\s;&|()<>]/.test(text.slice(target.end, target.end + 1))
    ? "Text directly behind the ')' belongs to the redirect's target, which is only known when the command runs"
    : null;
}

/** Like {@link misread}, for a whole script: checks spellings without a node in the syntax tree. */
export function misreadText(text: string): string | null {
  if (BROKEN_DOLLAR.test(text)) return "Shells disagree about a '$' at the end of a line";
  if (/\((?:\\\n)+\(|\)(?:\\\n)+\)/.test(text))
    return "Two brackets are split over two lines: shells disagree whether they mean arithmetic";
  if (/&(?:\\\n)+>/.test(text)) return "The operator '&>' is split over two lines";
  if (BROKEN_DESCRIPTOR.test(text)) return "The file descriptor of a redirect is split over two lines";
  return /(?:^|[^\\])(?:\\\\)*\\$/.test(text)
    ? "The command ends with a backslash that nothing follows"
    : null;
}

/** Whether a script on standard input has commands that read lines of the script itself: the remaining lines are another script. */
export function eatsItsLines(script: string): boolean {
  return script.includes("<<") && READS_LINES.test(script);
}
