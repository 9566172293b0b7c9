/** Finds characters that people take for others: Cyrillic letters in a name, full-width letters, slashes that separate nothing. */

/** Letters of other alphabets that are drawn as these of ASCII, in the same order. */
const ALIKE = "аеорсухіјѕһԁԛԝгтАВЕКМНОРСТХІЈЅԌԜΑΒΕΖΗΙΚΜΝΟΡΤΥΧνοιαɡıℓᴏᴄᴜᴠᴡᴢꞵӏо";

/** Signs drawn as one of a shell's or a path's. */
const SIGNS = "⁄∕⧸╱∖⧵∗ˋ´′ʹʼ‘’“”ˊ∣ǀ│٪։׃‚˗−‐‑‒–—―⁃٭⁎";

const MOST_LISTED = 5;

/** Words, and each other character alone. */
const WORDS_AND_SIGNS = /[\p{L}\p{N}\p{M}]+|[^\0-\x7f]/gu;

const ASCII = /[\0-\x7f]/;

/** Returns the words for them, or undefined for a text with none. */
export function lookAlikeWords(text: string): string | undefined {
  const found = [...new Set((text.match(WORDS_AND_SIGNS) ?? []).flatMap(strangersOf))];
  if (found.length === 0) return undefined;
  const some = found.slice(0, MOST_LISTED).map((one) => `'${one}' is ${codeOf(one)}`);
  const more = found.length > MOST_LISTED ? `, and ${found.length - MOST_LISTED} more` : "";
  return `not the characters that they look like: ${some.join(", ")}${more}`;
}

/** A word with a letter of its own alphabet, such as 'файл', is taken for no other. */
function strangersOf(word: string): readonly string[] {
  const strange = [...word].filter((character) => !ASCII.test(character));
  return strange.every(isLookAlike) ? strange : [];
}

/** Compatibility forms (full width, mathematical, ligatures) say themselves for what they stand (Unicode, UAX 15). */
function isLookAlike(character: string): boolean {
  return [...ALIKE, ...SIGNS].includes(character) || /^[!-~]+$/.test(character.normalize("NFKC"));
}

function codeOf(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}
