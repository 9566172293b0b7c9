const LONGEST = 80;

/** Control characters, line separators and direction marks: escaped, because a terminal would obey them. */
const UNPRINTABLE = /[\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;

/**
 * Formats a received value for an error message: text quoted, shortened to 80 characters, control characters escaped; lists and
 * objects only by size, because they can be long and hold secrets.
 */
export function quotedValue(value: unknown): string {
  switch (typeof value) {
    case "undefined":
      return "nothing";
    case "string":
      return quotedText(value);
    case "object":
      return value === null ? "null" : size(value);
    case "number":
    case "bigint":
    case "boolean":
      return String(value);
    default:
      return `a ${typeof value}`;
  }
}

function size(value: object): string {
  const list = Array.isArray(value);
  const count = list ? value.length : Object.keys(value).length;
  const noun = `${list ? "item" : "field"}${count === 1 ? "" : "s"}`;
  return list ? `a list of ${count} ${noun}` : `an object with ${count} ${noun}`;
}

/** Puts the text into double quotes, shortened to 80 characters. */
export function quotedText(text: string): string {
  return JSON.stringify(shortened(text)).replace(UNPRINTABLE, escaped);
}

/** Formats text for a path, without quotes: at most 80 characters, control characters escaped. */
export function plainText(text: string): string {
  return quotedText(text).slice(1, -1);
}

function shortened(text: string): string {
  if (text.length <= LONGEST) return text;
  const cut = text.slice(0, LONGEST - 1);
  // A cut between the halves of a surrogate pair would leave half a character.
  return `${cut.replace(/[\ud800-\udbff]$/, "")}…`;
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
