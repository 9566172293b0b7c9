/**
 * The Huffman code of HPACK (RFC 7541 Appendix B), as far as field names and hosts need it. It is canonical: codes of one
 * length are consecutive, in the order of their letters, and each length begins where the one before ended. So the
 * letters of each length are all there is to know.
 *
 * Left out are codes of more than 15 bits: `\`, DEL, control characters but NUL, and everything beyond ASCII.
 */
const LETTERS: readonly (readonly [bits: number, letters: string])[] = [
  [5, "012aceiost"],
  [6, " %-./3456789=A_bdfghlmnpru"],
  [7, ":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz"],
  [8, "&*,;XZ"],
  [10, '!"()?'],
  [11, "'+|"],
  [12, "#>"],
  [13, "\0$@[]~"],
  [14, "^}"],
  [15, "<`{"],
];

const MOST_BITS = 15;

type Length = { readonly first: number; readonly letters: string };

const BY_LENGTH = byLength();

/** The text of a coded string; undefined when a letter has a longer code, or the padding is none (RFC 7541 §5.2). */
export function decodeHuffman(bytes: Uint8Array): string | undefined {
  let text = "";
  let code = 0;
  let bits = 0;
  for (const byte of bytes)
    for (let shift = 7; shift >= 0; shift -= 1) {
      code = code * 2 + ((byte >> shift) & 1);
      bits += 1;
      const letter = letterOf(bits, code);
      if (letter === undefined && bits >= MOST_BITS) return undefined;
      if (letter === undefined) continue;
      text += letter;
      code = 0;
      bits = 0;
    }
  // Fewer than eight bits, all of them ones.
  return bits < 8 && code === 2 ** bits - 1 ? text : undefined;
}

function letterOf(bits: number, code: number): string | undefined {
  const length = BY_LENGTH[bits];
  return length?.letters[code - length.first];
}

function byLength(): readonly Length[] {
  const lengths: Length[] = [];
  let next = 0;
  for (let bits = 0; bits <= MOST_BITS; bits += 1) {
    const letters = LETTERS.find(([of]) => of === bits)?.[1] ?? "";
    lengths.push({ first: next, letters });
    next = (next + letters.length) * 2;
  }
  return lengths;
}
