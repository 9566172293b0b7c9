/**
 * A model's regular expression as a POSIX extended one (regex(7), with glibc's `\w`, `\s`, `\b`), by which a world searches lines.
 * Models write the language of JavaScript and Python: what means something else there is rewritten, and what POSIX cannot say is
 * refused, since a search for something else would report that nothing was found. Pure.
 */

/** What POSIX cannot say, with a sentence for the caller. */
export class Unsayable extends Error {}

/** Outside of brackets; glibc knows the rest of `\w \W \s \S \b \B \< \>` and back references by the same names. */
const OUTSIDE: Readonly<Record<string, string>> = { d: "[0-9]", D: "[^0-9]" };
const KNOWN_TO_GLIBC = /^[wWsSbB1-9<>]$/;

/** In brackets. */
const CLASSES: Readonly<Record<string, string>> = { d: "0-9", w: "[:alnum:]_", s: "[:space:]" };

const CONTROLS: Readonly<Record<string, string>> = {
  t: "\t",
  r: "\r",
  f: "\f",
  v: "\v",
  a: "\x07",
  e: "\x1b",
};

/** A code in an escape: `\x6d`, `\u00e9`, `\u{1f600}`. */
const CODE = /^(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\})/;

/** Groups whose meaning to a search of one line is that of `(`: without a number, or with a name. */
const PLAIN_GROUP = /^\((?:\?:|\?P?<[A-Za-z_]\w*>)/;

const CLASS_NAME = /^\[(?:[:][a-z]+[:]|[.][^\]]+[.]|[=][^\]]+[=])\]/;

/** Throws {@link Unsayable}. */
export function posixExpression(pattern: string): string {
  let done = "";
  for (let at = 0; at < pattern.length; ) {
    const rest = pattern.slice(at);
    const [text, taken] = partOf(rest);
    done += text;
    at += taken;
  }
  return done;
}

/** Returns the next part in POSIX's words, and its length in the pattern. */
function partOf(rest: string): readonly [text: string, taken: number] {
  const [group] = PLAIN_GROUP.exec(rest) ?? [];
  if (group !== undefined) return ["(", group.length];
  if (rest.startsWith("(?"))
    throw new Unsayable(`'${rest.slice(0, 4)}' is no group that POSIX knows: no look-around, no flags`);
  if (rest.startsWith("[")) return bracket(rest) ?? ["[", 1];
  if (!rest.startsWith("\\") || rest.length === 1) return [rest.charAt(0), 1];
  const { letter, character, taken } = escapeAt(rest);
  if (character !== undefined)
    return [/[.^$*+?()[\]{}|\\]/.test(character) ? `\\${character}` : character, taken];
  if (KNOWN_TO_GLIBC.test(letter)) return [`\\${letter}`, taken];
  const known = OUTSIDE[letter];
  if (known !== undefined) return [known, taken];
  if (letter === "n") throw new Unsayable("'\\n' finds nothing: each line is searched alone");
  throw new Unsayable(`'\\${letter}' is no escape that POSIX knows`);
}

type Escape = { readonly letter: string; readonly character: string | undefined; readonly taken: number };

/** An escape: of a character, or a letter with a meaning. */
function escapeAt(rest: string): Escape {
  const letter = rest.charAt(1);
  const [code, ...digits] = CODE.exec(rest.slice(1)) ?? [];
  if (code !== undefined) {
    const point = Number.parseInt(digits.find((one) => one !== undefined) ?? "", 16);
    if (point === 0 || point > 0x10ffff) throw new Unsayable(`'\\${code}' is no character of a line`);
    return { letter, character: String.fromCodePoint(point), taken: 1 + code.length };
  }
  const character = CONTROLS[letter] ?? (/[A-Za-z0-9<>]/.test(letter) ? undefined : letter);
  return { letter, character, taken: 2 };
}

/**
 * A bracket expression in POSIX's words: a backslash stands for itself there, and `]`, `^` and `-` by their places. Undefined for
 * one without an end, which regcomp(3) explains better.
 */
function bracket(rest: string): readonly [text: string, taken: number] | undefined {
  const isNegated = rest.startsWith("[^");
  const first = isNegated ? 2 : 1;
  const members: string[] = [];
  let [hasEnd, hasCaret, hasDash, hasLine] = [false, false, false, false];
  const negated = new Set<string>();
  let at = first;
  for (;;) {
    const next = rest.slice(at);
    if (next === "") return undefined;
    if (next.startsWith("]") && at > first) break;
    const [name] = CLASS_NAME.exec(next) ?? [];
    if (name !== undefined) {
      members.push(name);
      at += name.length;
      continue;
    }
    const isEscape = next.startsWith("\\") && next.length > 1;
    const { letter, character, taken } = isEscape ? escapeAt(next) : plain(next);
    at += taken;
    if (character === undefined) {
      const known = CLASSES[letter];
      if (known !== undefined) members.push(known);
      else if (/[DWS]/.test(letter)) negated.add(letter.toLowerCase());
      else if (letter === "n") hasLine = true;
      else if (letter === "b") members.push("\b");
      else throw new Unsayable(`'\\${letter}' in [] is no escape that POSIX knows`);
    } else if (character === "]") hasEnd = true;
    else if (character === "^") hasCaret = true;
    else if (character === "-" && (isEscape || isAlone(rest, at, first) || isClass(members.at(-1))))
      hasDash = true;
    else members.push(character);
  }
  const taken = at + 1;
  if (negated.size > 0) {
    const [one = ""] = negated;
    // `[\s\S]`: any character.
    if (negated.size === 1 && !isNegated && members.includes(CLASSES[one] ?? "")) return [".", taken];
    throw new Unsayable(`'\\${one.toUpperCase()}' in [] with others cannot be said in POSIX`);
  }
  const inside = `${hasEnd ? "]" : ""}${members.join("")}${hasCaret ? "^" : ""}${hasDash ? "-" : ""}`;
  if (inside === "") {
    if (isNegated && hasLine) return [".", taken];
    throw new Unsayable("'\\n' finds nothing: each line is searched alone");
  }
  // Alone, `[^]` would be no expression.
  if (inside === "^" && !isNegated) return ["\\^", taken];
  return [`[${isNegated ? "^" : ""}${caretLast(inside)}]`, taken];
}

function plain(next: string): Escape {
  const character = String.fromCodePoint(next.codePointAt(0) ?? 0);
  return { letter: character, character, taken: character.length };
}

/** Whether the dash before `at` is no range: at an end of the bracket, or before a class. */
function isAlone(rest: string, at: number, first: number): boolean {
  return at - 1 === first || /^(?:\]|\\[dws])/.test(rest.slice(at, at + 2));
}

function isClass(member: string | undefined): boolean {
  return member !== undefined && (CLASS_NAME.test(member) || Object.values(CLASSES).includes(member));
}

/** `^` first would negate: `[^-]` of a caret and a dash becomes `[-^]`. */
function caretLast(inside: string): string {
  return inside.startsWith("^") ? `${inside.slice(1)}^` : inside;
}
