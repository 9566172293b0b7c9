import type { KnownSecrets } from "../secrets/redact.ts";

/** Where words were cut off a secret may have been, and what is left of it looks like none. */
const CUT = "…";

/** Fewer characters of a secret give nothing away. */
const FEWEST = 3;

/**
 * The words of a program of which not all was told: the last one up to its last blank, since a token has none, and no word
 * ends with the beginning of a known secret.
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
