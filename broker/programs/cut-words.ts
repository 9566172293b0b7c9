import type { KnownSecrets } from "../secrets/redact.ts";

/** Marks cut text: a cut-off secret no longer looks like a secret. */
const CUT = "…";

/** Shorter prefixes of a secret reveal nothing. */
const FEWEST = 3;

/**
 * Shortens the incompletely reported words of a program. The last word ends at its last blank, since a token has no
 * blanks; no word ends with a prefix of a known secret.
 */
export function withoutCutEnds(words: readonly string[], known: KnownSecrets): readonly string[] {
  return words.map((word, at) => {
    const whole = withoutBeginnings(word, known);
    return at === words.length - 1 ? `${whole.replace(/\S+$/, "")}${CUT}` : whole;
  });
}

function withoutBeginnings(word: string, known: KnownSecrets): string {
  for (const value of known.values()) {
    const most = Math.min(value.length - 1, word.length);
    for (let length = most; length >= FEWEST; length -= 1)
      if (word.endsWith(value.slice(0, length))) return `${word.slice(0, -length)}${CUT}`;
  }
  return word;
}
