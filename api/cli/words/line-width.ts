/** How much room a line takes on a terminal. */

/** A colour of our own: it takes none. */
const COLOUR = String.raw`\u001b\[[\d;]*m`;
const PIECES = new RegExp(`${COLOUR}|.`, "gsu");
const IS_COLOUR = new RegExp(`^${COLOUR}$`);
const END_OF_COLOUR = "\u001b[39m";

/** Drawn over what stands before them. */
const COMBINING = /^[\p{Mn}\p{Me}]$/u;

/** Drawn two columns wide (Unicode's East Asian Width W and F, and emoji). */
const WIDE =
  /^[\p{Emoji_Presentation}\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]$/u;

/** The line, or as much of it as fits with `…` behind. Its text is harmless already. */
export function cutToWidth(line: string, width: number): string {
  let used = 0;
  let kept = "";
  let fits: string | undefined;
  for (const piece of line.match(PIECES) ?? []) {
    const room = columnsOf(piece);
    if (used + room > width) return `${fits ?? ""}…${kept.includes("\u001b") ? END_OF_COLOUR : ""}`;
    used += room;
    kept += piece;
    if (used < width) fits = kept;
  }
  return line;
}

function columnsOf(piece: string): number {
  if (IS_COLOUR.test(piece) || COMBINING.test(piece)) return 0;
  return WIDE.test(piece) ? 2 : 1;
}
