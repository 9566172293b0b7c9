import type { HereDoc, Redirection, SyntaxNode } from "unbash";
import type { CommandWord } from "./command.ts";
import type { Input, InputText } from "./inner.ts";
import { wordsOf } from "./read-command.ts";
import { readWord } from "./read-word.ts";

/** In a here-document a backslash quotes only these characters (POSIX, XCU 2.7.4); an escaped line end is removed. */
const ESCAPED = /\\([$`\\\n])/g;

/** A name for an open descriptor: the name says nothing of the content. */
const OPEN_FILE = /^\/(dev\/(stdin|fd\/|tty)|proc\/[^/]+\/fd\/)/;

/** Returns the standard input of a command with these redirects; the last redirect counts. */
export function inputOf(redirects: readonly Redirection[], around: Input): Input {
  const own = redirects.filter(isInput).at(-1);
  if (own === undefined) return around;
  if (own.type === "HereDoc") return documentText(own);
  const words = own.target === undefined ? [] : readWord(own.target);
  if (own.type === "HereString") return joined(words, "\n");
  const [target] = words;
  const open = own.operator === "<&" || target === undefined || OPEN_FILE.test(target.text);
  return open || isSubstituted(target) ? null : "file";
}

function isInput(redirect: Redirection): boolean {
  if (redirect.type === "Redirect" && !redirect.operator.startsWith("<")) return false;
  const { descriptor } = redirect;
  return descriptor === undefined || (descriptor.type === "FileDescriptor" && descriptor.value === 0);
}

/** `<(…)`, `''<(…)`: a pipe from another command. */
export function isSubstituted(word: CommandWord): boolean {
  return word.kind === "dynamic" && word.raw.includes("<(");
}

function documentText(here: HereDoc): InputText {
  const { parts, text } = here.body;
  if (here.delimiter?.quoted === true) return { text, certain: true };
  // The parser leaves a body without an expansion as written.
  if (parts === undefined)
    return {
      text: text.replace(ESCAPED, (_all, char: string) => (char === "\n" ? "" : char)),
      certain: true,
    };
  const values = parts.map((part) => (part.type === "Literal" ? part.value : null));
  const certain = values.every((value) => value !== null);
  return { text: certain ? values.join("") : text, certain };
}

const PASSING: ReadonlySet<string> = new Set(["echo", "printf", "tee", "cat"]);

/** Returns the output of a pipeline stage for the next stage. Only programs that surely pass text on unchanged. */
export function outputOf(stage: SyntaxNode, around: Input): Input {
  if (stage.type !== "Command" || !PASSING.has(stage.name?.value ?? "")) return null;
  const [program, ...args] = wordsOf(stage);
  if (program?.kind !== "literal") return null;
  const input = inputOf(stage.redirects, around);
  if (program.text === "echo") return echoed(args);
  if (program.text === "printf") return printedBy(args);
  if (program.text === "tee") return input;
  return program.text === "cat" ? concatenated(args, input) : null;
}

/** dash prints `-e` as text and expands backslashes, bash does the opposite: either makes the text uncertain. */
function echoed(args: readonly CommandWord[]): InputText {
  const from = args.findIndex((word) => word.text !== "-n");
  const shown = from < 0 ? [] : args.slice(from);
  const text = joined(shown, from > 0 ? "" : "\n");
  const plain = !shown.some((word) => word.text.includes("\\")) && !/^-[neE]+$/.test(shown[0]?.text ?? "");
  return { text: text.text, certain: text.certain && plain };
}

function concatenated(args: readonly CommandWord[], input: Input): Input {
  const files = args.filter((word) => !/^-./.test(word.text));
  const isOwn = (word: CommandWord): boolean => word.text === "-" || OPEN_FILE.test(word.text);
  if (files.length < args.length || files.some(isSubstituted)) return null;
  if (files.every(isOwn)) return files.length < 2 ? input : null;
  return files.some(isOwn) ? null : "file";
}

function joined(words: readonly CommandWord[], end: string): InputText {
  const text = words.map((word) => word.text).join(" ") + end;
  return { text, certain: words.every((word) => word.kind === "literal") };
}

/** Not `\'` and `\"`: bash removes the backslash, dash prints the backslash. */
const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", "\\": "\\" };
/** More arguments than a hand-written script has. */
const MOST_ARGUMENTS = 256;

/** Returns the output of `printf FORMAT WORD…`; null for any format other than plain text with `%s`. */
function printedBy(args: readonly CommandWord[]): Input {
  const [format, ...words] = args[0]?.text === "--" ? args.slice(1) : args;
  if (format === undefined || format.text.startsWith("-") || words.length > MOST_ARGUMENTS) return null;
  const pieces = piecesOf(format.text);
  if (pieces === null) return null;
  const holes = pieces.filter((piece) => piece === null).length;
  const rounds = holes === 0 ? 1 : Math.max(1, Math.ceil(words.length / holes));
  const given = words.map((word) => word.text);
  let text = "";
  for (let round = 0; round < rounds; round += 1)
    text += pieces.map((piece) => piece ?? given.shift() ?? "").join("");
  return { text, certain: [format, ...words].every((word) => word.kind === "literal") };
}

/** Splits a format into text, with null for each `%s`. Returns null for any other conversion. */
function piecesOf(format: string): (string | null)[] | null {
  const pieces: (string | null)[] = [];
  for (let at = 0; at < format.length; at += 1) {
    const char = format[at] ?? "";
    if (char !== "\\" && char !== "%") {
      pieces.push(char);
      continue;
    }
    at += 1;
    const next = format[at] ?? "";
    if (char === "%" && next === "s") pieces.push(null);
    else if (char === "%" && next === "%") pieces.push("%");
    else if (char === "\\" && Object.hasOwn(ESCAPES, next)) pieces.push(ESCAPES[next] ?? "");
    else return null;
  }
  return pieces;
}
