/** The words that a word may be where the operand of an expansion counts: `${x:--c}`, `"${PWD:+-c}"`, `-${x:-c}`, `${x/y/-c}`. */
import type { DoubleQuotedChild, Word, WordPart } from "unbash";
import { type CommandWord, UNKNOWN_MARK } from "./command.ts";
import { unmarked } from "./dash.ts";

/** Operands in one word of which each choice is read; with more the word may be any option. */
const MOST_OPERANDS = 3;

/** A word in the making; several where unquoted blanks split them. */
type Text = { readonly text: string; readonly isKnown: boolean };

/** What a part of a word stands for. `isOperand`: or for nothing, as the variable decides. */
type Piece = { readonly texts: readonly Text[]; readonly isOperand: boolean };

const NOTHING: readonly Text[] = [{ text: "", isKnown: true }];
const ANYTHING: readonly Text[] = [{ text: UNKNOWN_MARK, isKnown: false }];

/** Returns the readings in which at least one operand counts, first the one with all; undefined without operands. */
export function operandReadings(word: Word): readonly (readonly CommandWord[])[] | undefined {
  const pieces = (word.parts ?? []).flatMap((part) => piecesOf(part, false));
  const count = pieces.filter(({ isOperand }) => isOperand).length;
  if (count === 0) return undefined;
  if (count > MOST_OPERANDS)
    return [
      readingOf(pieces, -1, word.text),
      [{ kind: "dynamic", text: `-${UNKNOWN_MARK}`, raw: word.text }],
    ];
  const all = 2 ** count - 1;
  return Array.from({ length: all }, (_, at) => readingOf(pieces, all - at, word.text));
}

/** @param chosen a bit for each operand; -1: all, however many. */
function readingOf(pieces: readonly Piece[], chosen: number, raw: string): readonly CommandWord[] {
  let operand = 0;
  const texts = pieces.reduce((before, { texts: own, isOperand }) => {
    const counts = !isOperand || chosen === -1 || (chosen & (2 ** operand++)) !== 0;
    return joined(before, counts ? own : NOTHING);
  }, NOTHING);
  return texts
    .filter(({ text }) => text !== "")
    .map(({ text, isKnown }) => ({ kind: isKnown ? "literal" : "dynamic", text, raw }));
}

function joined(before: readonly Text[], after: readonly Text[]): readonly Text[] {
  const [last, first] = [before.at(-1), after[0]];
  if (last === undefined || first === undefined) return [...before, ...after];
  const middle = { text: last.text + first.text, isKnown: last.isKnown && first.isKnown };
  return [...before.slice(0, -1), middle, ...after.slice(1)];
}

function piecesOf(part: WordPart | DoubleQuotedChild, isQuoted: boolean): readonly Piece[] {
  if (part.type === "DoubleQuoted") return part.parts.flatMap((child) => piecesOf(child, true));
  const written = writtenText(part);
  if (written !== undefined) return [{ texts: [{ text: written, isKnown: true }], isOperand: false }];
  // Where nothing is said of its value, the variable is not set: readings with a value are another's.
  if (part.type === "SimpleExpansion") return [{ texts: NOTHING, isOperand: false }];
  if (part.type !== "ParameterExpansion") return [{ texts: ANYTHING, isOperand: false }];
  const operand = operandOf(part);
  if (operand === undefined) return [{ texts: NOTHING, isOperand: false }];
  const texts = textsOf(operand);
  return [{ texts: isQuoted ? [inOne(texts)] : texts, isOperand: true }];
}

function writtenText(part: WordPart | DoubleQuotedChild): string | undefined {
  const isWritten = part.type === "Literal" || part.type === "SingleQuoted" || part.type === "AnsiCQuoted";
  return isWritten ? unmarked(part.value) : undefined;
}

/** The word that may be the value: not that of `${x:?…}`, which is a message. */
function operandOf(part: WordPart | DoubleQuotedChild): Word | undefined {
  const operation = part.type === "ParameterExpansion" ? part.operation : undefined;
  if (operation?.type === "Replace") return operation.replacement;
  return operation?.type === "Default" && !operation.operator.endsWith("?") ? operation.operand : undefined;
}

/** The words of an operand: blanks outside its quotes split it. */
function textsOf(operand: Word): readonly Text[] {
  if (operand.parts === undefined) return split(unmarked(operand.value));
  return operand.parts.reduce<readonly Text[]>((before, part) => {
    const written = writtenText(part);
    const inner = operandOf(part);
    if (part.type === "Literal") return joined(before, split(written ?? ""));
    if (written !== undefined) return joined(before, [{ text: written, isKnown: true }]);
    if (part.type === "DoubleQuoted") return joined(before, [quotedText(part.parts)]);
    return joined(before, inner === undefined ? ANYTHING : textsOf(inner));
  }, NOTHING);
}

function quotedText(parts: readonly DoubleQuotedChild[]): Text {
  const texts = parts.map((part): Text => {
    const text = writtenText(part);
    return text === undefined ? { text: UNKNOWN_MARK, isKnown: false } : { text, isKnown: true };
  });
  return { text: texts.map(({ text }) => text).join(""), isKnown: texts.every(({ isKnown }) => isKnown) };
}

function split(text: string): readonly Text[] {
  return text.split(/[ \t\n]+/).map((one) => ({ text: one, isKnown: true }));
}

function inOne(texts: readonly Text[]): Text {
  return { text: texts.map(({ text }) => text).join(" "), isKnown: texts.every(({ isKnown }) => isKnown) };
}
