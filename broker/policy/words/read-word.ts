import type { DoubleQuotedChild, ParameterExpansionPart, Word, WordPart } from "unbash";
import { type CommandWord, HOME_MARK, UNKNOWN_MARK } from "./command.ts";
import { markFor, unmarked } from "./dash.ts";
import { operandReadings } from "./operand-words.ts";
import { hasOddBraces } from "./odd-braces.ts";

/** A part of a word before brace expansion: a choice multiplies the word, a split (`$IFS`) cuts the word. */
type Segment =
  | { readonly kind: "text" | "glob"; readonly text: string }
  /** `whole`: always at least a word, as `"$x"` and `$((x))`. */
  | { readonly kind: "unknown"; readonly whole: boolean }
  | { readonly kind: "split" }
  /** The empty part of `{,a}`: becomes no word without adjacent text. */
  | { readonly kind: "nothing" }
  | { readonly kind: "choice"; readonly texts: readonly string[] };

const UNKNOWN: Segment = { kind: "unknown", whole: true };
const LOOSE: Segment = { kind: "unknown", whole: false };
const NOTHING: Segment = { kind: "nothing" };
const SPLIT: Segment = { kind: "split" };
const MAX_BRACE_WORDS = 256;
/** Limit over all words expanded from a written word: `{a,b}` repeated to 64 KiB would otherwise be copied 256 times. */
const MAX_BRACE_SEGMENTS = 16_384;
/** Quotes around literal characters only. */
const SIMPLE_QUOTES = /'([^']*)'|"([^"\\$`]*)"|\\([^\n])/g;
/** `''`: an empty word, but still a word. */
const EMPTY = markFor("\0");
const TILDE_PREFIX = /^~[^/]*/;
/** bash expands the home folder in arguments that look like assignments: `dd of=~/x`. */
const ASSIGNED_TILDE = /^[A-Za-z_][A-Za-z0-9_]*\+?=(?=~)/;

/**
 * Expands a written word in the shell's order: braces, home folder and expansions, splitting. Usually returns a single word; no
 * word for a lone `$IFS`.
 */
export function readWord(word: Word): CommandWord[] {
  if (hasOddBraces(word)) return [dynamicWord(word.text)];
  // Fast path: most words are plain.
  if (word.parts === undefined && !word.text.includes("~"))
    return [{ kind: "literal", text: unmarked(word.value), raw: word.text }];
  const segments = word.parts === undefined ? plainSegments(word.text, word.value) : partSegments(word);
  const words = expandChoices(segments).flatMap((expanded) => splitWords(expanded, word.text));
  const otherwise = operandReadings(word);
  const [only] = words;
  return otherwise === undefined || only === undefined || words.length > 1 ? words : [{ ...only, otherwise }];
}

/** A word that no shell reads: taken literally. */
export function literalWord(text: string): CommandWord {
  return { kind: "literal", text, raw: text };
}

export function dynamicWord(raw: string): CommandWord {
  return { kind: "dynamic", text: UNKNOWN_MARK, raw };
}

function plainSegments(written: string, value: string): Segment[] {
  if (written.startsWith("~")) return tildeSegments(value);
  const name = ASSIGNED_TILDE.exec(written)?.[0];
  if (name === undefined) return [{ kind: "text", text: unmarked(value) }];
  return [{ kind: "text", text: name }, ...tildeSegments(value.slice(name.length))];
}

function tildeSegments(value: string): Segment[] {
  const prefix = TILDE_PREFIX.exec(value)?.[0] ?? "";
  const rest: Segment = { kind: "text", text: value.slice(prefix.length) };
  // Only the shell knows the folders of ~name, ~+ and ~-.
  return [prefix === "~" ? { kind: "text", text: HOME_MARK } : UNKNOWN, rest];
}

function partSegments(word: Word): Segment[] {
  const [first, ...others] = word.parts ?? [];
  if (first === undefined) return [{ kind: "text", text: word.value }];
  const tilde = first.type === "Literal" && first.text.startsWith("~") && endsTildePrefix(first.text, others);
  const head = tilde && first.type === "Literal" ? tildeSegments(first.value) : partSegment(first);
  return joinedNames([...head, ...others.flatMap(partSegment)], word.text);
}

/** `$x{a,b}`: braces expand first, so the variables are xa and xb. */
function joinedNames(segments: Segment[], written: string): Segment[] {
  return /\$\w+\{/.test(written)
    ? segments.map((one, at) =>
        segments[at - 1] === LOOSE && (one.kind === "choice" || one === UNKNOWN) ? LOOSE : one,
      )
    : segments;
}

/** The shell does not expand a prefix with a quote inside (`~"name"`). */
function endsTildePrefix(text: string, others: readonly WordPart[]): boolean {
  return text.includes("/") || others.length === 0;
}

function partSegment(part: WordPart): Segment[] {
  switch (part.type) {
    case "Literal":
    case "SingleQuoted":
    case "AnsiCQuoted":
      return [{ kind: "text", text: unmarked(part.value) }];
    case "Glob":
    case "ExtendedGlob":
      return [{ kind: "glob", text: part.text }];
    case "DoubleQuoted":
    case "LocaleString":
      return doubleQuoted(part.parts);
    case "SimpleExpansion":
      return [part.text === "$IFS" ? SPLIT : unquoted(variableSegment(part.text))];
    case "ParameterExpansion":
      return [part.parameter === "IFS" && isPlain(part) ? SPLIT : unquoted(parameterSegment(part))];
    case "CommandExpansion":
      return [LOOSE];
    case "BraceExpansion":
      return [braceSegment(part.text)];
    default:
      return [UNKNOWN];
  }
}

/** `"$@"` and `"${a[@]}"` alone expand to a word per parameter: to no word, or to several. */
function doubleQuoted(parts: readonly DoubleQuotedChild[]): Segment[] {
  const lists = parts.filter(isList).length;
  const empty = parts.every((part) => part.type !== "Literal");
  const loose = parts.map((part): Segment => (isList(part) ? LOOSE : quotedSegment(part)));
  return lists > 0 && empty ? loose.map(unquoted) : [{ kind: "text", text: "" }, ...loose];
}

function isList(part: DoubleQuotedChild): boolean {
  if (part.type === "SimpleExpansion") return part.text === "$@";
  if (part.type !== "ParameterExpansion") return false;
  return part.parameter === "@" || part.index?.text === "@" || part.operation?.operator === "@";
}

function unquoted(segment: Segment): Segment {
  return segment.kind === "unknown" ? LOOSE : segment;
}

function quotedSegment(part: DoubleQuotedChild): Segment {
  if (part.type === "Literal") return { kind: "text", text: unmarked(part.value) };
  if (part.type === "SimpleExpansion") return variableSegment(part.text);
  return part.type === "ParameterExpansion" ? parameterSegment(part) : UNKNOWN;
}

function variableSegment(text: string): Segment {
  return text === "$HOME" ? { kind: "text", text: HOME_MARK } : UNKNOWN;
}

function parameterSegment(part: ParameterExpansionPart): Segment {
  return isPlain(part) ? variableSegment(`$${part.parameter}`) : UNKNOWN;
}

function isPlain(part: ParameterExpansionPart): boolean {
  return part.prefix === undefined && part.index === undefined && part.operation === undefined;
}

function braceSegment(text: string): Segment {
  const plain = quotedAsMarks(text);
  // Expansions inside braces, and sequences ({1..9}), stay unknown.
  const simple = !/["'\\$`*?[\]()<>]/.test(plain);
  const texts = simple ? expandBraces(plain) : null;
  // `{,$x}` is no word at all where x is empty.
  if (texts === null && /[$`]/.test(text)) return LOOSE;
  return texts === null ? UNKNOWN : { kind: "choice", texts };
}

/** `{'a,b',c\}}`: replaces quoted characters by marks, so that no quoted brace, comma or tilde counts. */
function quotedAsMarks(text: string): string {
  // Marks in the source text itself would look like quoted characters.
  if (unmarked(text) !== text) return text;
  return text.replaceAll(SIMPLE_QUOTES, (_all, single?: string, double?: string, escaped?: string) => {
    const quoted = single ?? double ?? escaped ?? "";
    return quoted === "" ? EMPTY : quoted.replaceAll(/[\s!-~]/g, markFor);
  });
}

/** `{a,b{c,d}}` → a, bc, bd. Null for a sequence or too many words. */
function expandBraces(text: string): string[] | null {
  const open = text.indexOf("{");
  const parts = open < 0 ? null : braceAlternatives(text, open);
  if (parts === null) return [text];
  if (parts.alternatives.length < 2) return null;
  const head = text.slice(0, open);
  const expanded: string[] = [];
  for (const alternative of parts.alternatives) {
    const inner = expandBraces(alternative);
    const tails = expandBraces(text.slice(parts.end));
    if (inner === null || tails === null) return null;
    for (const middle of inner) for (const tail of tails) expanded.push(head + middle + tail);
    if (expanded.length > MAX_BRACE_WORDS) return null;
  }
  return expanded;
}

function braceAlternatives(text: string, open: number): { alternatives: string[]; end: number } | null {
  const alternatives: string[] = [];
  let depth = 0;
  let start = open + 1;
  for (let at = open; at < text.length; at += 1) {
    const char = text[at];
    if (char === "{") depth += 1;
    if (char === "}") depth -= 1;
    if (depth === 0 || (depth === 1 && char === ",")) {
      alternatives.push(text.slice(start, at));
      start = at + 1;
    }
    if (depth === 0) return { alternatives, end: at + 1 };
  }
  return null;
}

function expandChoices(segments: readonly Segment[]): Segment[][] {
  let expanded: Segment[][] = [[]];
  const most = Math.min(MAX_BRACE_WORDS, MAX_BRACE_SEGMENTS / segments.length);
  for (const segment of segments) {
    const options = segment.kind === "choice" ? segment.texts : null;
    if (options === null || expanded.length * options.length > most) {
      const one = options === null ? segment : UNKNOWN;
      for (const list of expanded) list.push(one);
      continue;
    }
    expanded = expanded.flatMap((list) =>
      options.map((text): Segment[] => [...list, ...choiceSegments(text, list.length === 0)]),
    );
  }
  return expanded;
}

/** The home folder is expanded after braces: `{a,~/b}`. In `{a,~}b` the text behind may be a user's name, or quoted. */
function choiceSegments(text: string, isFirst: boolean): Segment[] {
  if (text === "") return [NOTHING];
  const plain = unmarked(text.replaceAll(EMPTY, ""));
  if (!isFirst || !text.startsWith("~")) return [{ kind: "text", text: plain }];
  return text.includes("/") ? tildeSegments(plain) : [UNKNOWN];
}

function splitWords(segments: readonly Segment[], raw: string): CommandWord[] {
  const words: CommandWord[] = [];
  let group: Segment[] = [];
  for (const segment of [...segments, SPLIT]) {
    if (segment.kind !== "split") group.push(segment);
    else {
      if (group.length > 0) words.push(joinSegments(group, raw));
      group = [];
    }
  }
  return words;
}

function joinSegments(segments: readonly Segment[], raw: string): CommandWord {
  let text = "";
  let kind: CommandWord["kind"] = "literal";
  for (const segment of segments) {
    if (segment.kind === "nothing") continue;
    if (segment.kind === "unknown") kind = "dynamic";
    if (segment.kind === "glob" && kind === "literal") kind = "glob";
    text += "text" in segment ? segment.text : UNKNOWN_MARK;
  }
  const vanishes = segments.every((one) => one.kind === "nothing" || (one.kind === "unknown" && !one.whole));
  return vanishes ? { kind, text, raw, vanishes } : { kind, text, raw };
}
