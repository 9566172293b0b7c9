import { parseSync } from "oxc-parser";

/** Words that stand for a thing without naming it. */
const PRONOUNS = new Set(
  `it its itself this that these those they them their theirs themselves one ones none nobody nothing
  what whatever which whichever who whom whose whoever something somebody anything anybody everything everybody
  he she him her we us you both either neither`.split(/\s+/),
);

/** Words that a sentence needs and that say nothing by themselves; with {@link PRONOUNS}. */
const FUNCTION_WORDS = new Set(
  `a an the and or but nor so if then when where than as at by for from in into of off on onto out over to under up with without
  is are was were be been being do does did has have had can could may might must shall should will would not no`.split(
    /\s+/,
  ),
);

/** Comments of fewer words say too little to be measured. */
const MEASURED_WORDS = 9;

/**
 * The comments of a source file, their marks taken off; lines of `//` that follow each other are one comment.
 * @param {string} path
 * @param {string} text
 * @returns {string[]}
 */
export function commentsOf(path, text) {
  const found = /\.[ch]$/.test(path) ? commentsOfC(text) : parseSync(path, text).comments;
  /** @type {string[]} */
  const comments = [];
  let end = -1;
  for (const comment of found) {
    const follows = comment.type === "Line" && end >= 0 && /^\s*$/.test(text.slice(end, comment.start));
    if (follows) comments[comments.length - 1] += ` ${comment.value}`;
    else comments.push(comment.value);
    end = comment.type === "Line" ? comment.end : -1;
  }
  return comments.map((comment) => comment.replace(/^\s*\*+ ?/gm, ""));
}

/**
 * Strings are matched too, so that none in them counts as a comment.
 * @param {string} text
 */
function commentsOfC(text) {
  return [...text.matchAll(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\/\*([\s\S]*?)\*\/|\/\/([^\n]*)/g)]
    .filter(([, block, line]) => block !== undefined || line !== undefined)
    .map(({ 0: whole, 1: block, 2: line, index }) => ({
      type: line === undefined ? "Block" : "Line",
      value: block ?? line ?? "",
      start: index,
      end: index + whole.length,
    }));
}

/**
 * Shares in percent, one decimal: of words that are pronouns, and of comments (of nine words or more) whose words are function
 * words for at least 60 %. What stands in backquotes, tags of docstrings and addresses are no words.
 * @param {readonly string[]} comments
 */
export function englishOf(comments) {
  const all = comments.map(wordsOf).filter((words) => words.length > 0);
  const words = all.flat();
  const measured = all.filter(({ length }) => length >= MEASURED_WORDS);
  const hollow = measured.filter((one) => share(one, isFunctionWord) >= 60);
  return {
    pronouns: rounded(share(words, (word) => PRONOUNS.has(word))),
    hollow: rounded((100 * hollow.length) / Math.max(1, measured.length)),
  };
}

/** @param {string} comment */
function wordsOf(comment) {
  const plain = comment
    .replace(/`[^`]*`|\{@[^}]*\}|@\w+(?:\s*\{[^}]*\})?|\S*[/_(){}\d]\S*/g, " ")
    .toLowerCase();
  return plain.match(/[a-z]+(?:['’-][a-z]+)*/g) ?? [];
}

/** @param {string} word */
function isFunctionWord(word) {
  return PRONOUNS.has(word) || FUNCTION_WORDS.has(word);
}

/**
 * @param {readonly string[]} words
 * @param {(word: string) => boolean} test
 */
function share(words, test) {
  return (100 * words.filter(test).length) / Math.max(1, words.length);
}

/** @param {number} percent */
function rounded(percent) {
  return Math.round(percent * 10) / 10;
}
