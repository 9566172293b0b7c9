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
