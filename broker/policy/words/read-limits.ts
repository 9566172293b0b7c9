import { FRAME_MAX_WORDS } from "../../../schemas/generated/frames.ts";

/**
 * Limits checked before parsing. Measured parser times: 1 MB 195 ms, 10,000 nested `$(` 199 ms, 16,000 here-documents 500 ms,
 * 60,000 backquotes 75 ms.
 */
export const MAX_TEXT_LENGTH = 64 * 1024;
export const MAX_NESTING = 200;
/** Levels by characters: the parser scans the text inside `$(` again at each level. 190 levels of 64 KiB took 500 ms. */
export const MAX_NESTED_TEXT = 3_000_000;
/**
 * Substitutions with a quote inside, by characters: for each open quote the parser searches the text to the end. 12,000 of `$(")
 * ` took 500 ms.
 */
export const MAX_QUOTED_TEXT = 60_000_000;
export const MAX_HERE_DOCUMENTS = 256;
export const MAX_BACKQUOTES = 2048;
/** `;`, `|`, `&` and newlines, quoted or not. */
export const MAX_SEPARATORS = 8000;
/** Blanks, quoted or not; a run of them counts once. 31,000 words of one letter took 700 ms to read and decide about. */
export const MAX_BLANKS = 16_000;
export const MAX_FRAGMENTS = 2000;
/** Over all scripts inside scripts (`sh -c`, `eval`) and second readings. */
export const MAX_TEXT_IN_ALL = 2 * MAX_TEXT_LENGTH + 4096;
export const MAX_WRAPPERS = 8;

/**
 * For a program and its arguments, without shell text to parse: twice what xargs puts on a line (GNU: 128 KiB), and what a gate reads of
 * a program that starts. Deciding about so many words takes up to 200 ms; 2 MB took a second.
 */
export const MAX_WORDS_LENGTH = FRAME_MAX_WORDS;

/** Returns why the words of an argv are not read at all, or null. Scripts among the words (`sh -c`) have their own limits. */
export function refuseToReadWords(text: string): string | null {
  if (text.length <= MAX_WORDS_LENGTH) return tooCrowded(text, [BLANKS]);
  return `A program and its arguments may have at most ${MAX_WORDS_LENGTH} characters; these have ${text.length}`;
}

/** Returns the reason not to parse the text, as a sentence, or null. Scans at most 64 KiB. */
export function refuseToRead(text: string): string | null {
  if (text.length > MAX_TEXT_LENGTH) {
    return `A command may have at most ${MAX_TEXT_LENGTH} characters; this one has ${text.length}`;
  }
  if (text.includes("\0")) return "A command cannot hold a NUL character";
  const depth = nestingDepth(text);
  if (depth > MAX_NESTING)
    return `A command may be nested at most ${MAX_NESTING} levels deep; this one is deeper`;
  if (depth * text.length > MAX_NESTED_TEXT) {
    return `A command of ${text.length} characters may be nested at most ${Math.floor(MAX_NESTED_TEXT / text.length)} levels deep; this one has ${depth}`;
  }
  const quoted = quotedSubstitutions(text);
  if (quoted * text.length > MAX_QUOTED_TEXT) {
    return `A command of ${text.length} characters may hold at most ${Math.floor(MAX_QUOTED_TEXT / text.length)} substitutions with quotes inside; this one has ${quoted}`;
  }
  return tooCrowded(text, CROWDS);
}

type Crowd = { readonly pattern: RegExp; readonly most: number; readonly what: string };

const BLANKS: Crowd = { pattern: /\s+/g, most: MAX_BLANKS, what: "blanks" };

const CROWDS: readonly Crowd[] = [
  { pattern: /<</g, most: MAX_HERE_DOCUMENTS, what: "here-documents" },
  { pattern: /`/g, most: MAX_BACKQUOTES, what: "backquotes" },
  { pattern: /[;|&\n]/g, most: MAX_SEPARATORS, what: "separators" },
  BLANKS,
];

function tooCrowded(text: string, crowds: readonly Crowd[]): string | null {
  const crowd = crowds.find(({ pattern, most }) => countOf(text, pattern) > most);
  return crowd === undefined
    ? null
    : `A command may hold at most ${crowd.most} ${crowd.what}; this one has more`;
}

function countOf(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0;
}

/** Counts brackets without regard to quotes: too high now and then, never too low for `(` and `{`. */
function nestingDepth(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 40 || code === 123) {
      depth += 1;
      if (depth > deepest) deepest = depth;
    } else if ((code === 41 || code === 125) && depth > 0) depth -= 1;
  }
  return deepest;
}

/** Counts each `$(` with a quote before its first `)`. */
function quotedSubstitutions(text: string): number {
  let count = 0;
  let isOpen = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 40 && text.charCodeAt(at - 1) === 36) isOpen = true;
    else if (code === 41) isOpen = false;
    else if (isOpen && (code === 34 || code === 39)) {
      count += 1;
      isOpen = false;
    }
  }
  return count;
}
