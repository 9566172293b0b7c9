/** Rows of a terminal: text chosen by agents is broken and indented here, so that none of it begins where labels of ours begin. */
import type { Terminal } from "./terminal.ts";

/** Stands before continued rows: labels of listings and questions begin further left. */
const BEFORE = " ".repeat(12);

/** Longest run of blanks inside a line, and at its beginning, where programs and here-documents have theirs. */
const MOST_BLANKS = 16;
const MOST_INDENT = 60;

/** Width where the terminal does not say it. */
const USUAL_WIDTH = 80;

/** Prints text for a person. A pipe or file gets the text as it is. Text of agents must be escaped before. */
export function printRows({ out }: Terminal, text: string, most?: number): void {
  out.write(`${rowsOn(out, text, most)}\n`);
}

/** Like {@link printRows}, to standard error. */
export function sayRows({ err }: Terminal, text: string): void {
  err.write(`${rowsOn(err, text)}\n`);
}

/**
 * Breaks lines at the width of the terminal that the stream is, indents all but the first, and names the length of long runs of blanks.
 * `most`: rows of each line, the last of which ends with `…`. Returns the text unchanged for a pipe or file.
 */
function rowsOn(stream: NodeJS.WriteStream, text: string, most = Number.POSITIVE_INFINITY): string {
  const width = widthOf(stream);
  if (width === undefined) return text;
  return text
    .split("\n")
    .map((line, at) => brokenLine(withoutGaps(at === 0 ? line : indented(line)), width, most))
    .join("\n");
}

function indented(line: string): string {
  return line.startsWith(BEFORE) ? line : BEFORE + line;
}

/** Breaks the lines of a patch or table, which keep their blanks and where they begin. */
export function brokenOn(stream: NodeJS.WriteStream, text: string): string {
  const width = widthOf(stream);
  if (width === undefined) return text;
  return text
    .split("\n")
    .map((line) => brokenLine(line, width))
    .join("\n");
}

/** Width of the terminal in columns; undefined without a terminal, where lines are printed whole. */
export function widthOf({ isTTY, columns }: NodeJS.WriteStream): number | undefined {
  if (!isTTY) return undefined;
  return columns > 0 ? columns : USUAL_WIDTH;
}

/**
 * Names the length of a run of blanks instead of showing it: `ls[1960 blanks]-l`. Other kinds of blanks are escaped already, and a line
 * feed of the text may be.
 */
export function withoutGaps(line: string): string {
  return line.replace(LONG_GAP, (blanks, lineFeed: string | undefined, at: number) => {
    const count = blanks.length - (lineFeed?.length ?? 0);
    const isIndent = at === 0 || lineFeed !== undefined;
    if (isIndent && count <= MOST_INDENT) return blanks;
    return `${lineFeed ?? (isIndent ? BEFORE : "")}[${count} blanks]`;
  });
}

const LONG_GAP = new RegExp(String.raw`(\\x0a)? {${MOST_BLANKS + 1},}`, "g");

/** A colour sequence printed by the CLI: takes no column. */
const COLOUR = String.raw`\u001b\[[\d;]*m`;
const PIECES = new RegExp(`${COLOUR}|.`, "gsu");
const IS_COLOUR = new RegExp(`^${COLOUR}$`);
const END_OF_COLOUR = "\u001b[39m";

/**
 * Breaks a line into rows of at most `width` columns, at blanks where a row keeps more than half of its text. Continued rows are indented.
 * Counts every character outside ASCII as two columns, because terminals differ: a row that the terminal itself continues would
 * begin at the left edge.
 */
export function brokenLine(line: string, width: number, most = Number.POSITIVE_INFINITY): string {
  const pieces = line.match(PIECES) ?? [];
  const before = BEFORE.slice(0, width >> 1);
  const rows: string[] = [];
  for (let at = 0; ; ) {
    const begin = rows.length === 0 ? "" : before;
    const fitting = fittingEnd(pieces, at, begin.length, width);
    const isCut = fitting < pieces.length && rows.length + 1 >= most;
    const end = isCut ? fittingEnd(pieces, at, begin.length, width - 2) : endOfRow(pieces, at, fitting);
    rows.push(begin + pieces.slice(at, end).join("") + (isCut ? cutMark(pieces) : ""));
    if (isCut || end === pieces.length) return rows.join("\n");
    at = end;
  }
}

/** End of the pieces that fit between two columns; every row takes at least one. */
function fittingEnd(pieces: readonly string[], from: number, column: number, width: number): number {
  let used = column;
  for (let at = from; at < pieces.length; at += 1) {
    used += mostColumnsOf(pieces[at] ?? "", used);
    if (used > width) return Math.max(from + 1, at);
  }
  return pieces.length;
}

/** Ends a row behind its last blank, unless that is in its first half or the line ends here. */
function endOfRow(pieces: readonly string[], from: number, fitting: number): number {
  if (fitting >= pieces.length) return fitting;
  let blank = fitting - 1;
  while (blank * 2 > from + fitting && pieces[blank] !== " ") blank -= 1;
  return blank * 2 > from + fitting ? blank + 1 : fitting;
}

function cutMark(pieces: readonly string[]): string {
  return `…${pieces.some((piece) => IS_COLOUR.test(piece)) ? END_OF_COLOUR : ""}`;
}

const TAB_STOP = 8;

/** The most columns that any terminal draws a character in. */
function mostColumnsOf(piece: string, used: number): number {
  if (IS_COLOUR.test(piece)) return 0;
  if (piece === "\t") return TAB_STOP - (used % TAB_STOP);
  return piece < "\u0080" ? 1 : 2;
}

/** Combining characters, drawn over the character before: no column. */
const COMBINING = /^[\p{Mn}\p{Me}]$/u;

/** Drawn one column wide by every terminal, except where the terminal's settings widen foreign letters. All others count two. */
const NARROW = /^[\0-\u10ff\u1160-\u22ff\u2400-\u25fc]$/u;

/** Cuts a line to the width, with `…` at the end. The text must be escaped already. */
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
  return NARROW.test(piece) ? 1 : 2;
}
