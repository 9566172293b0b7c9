/** Draws the tree of a span. */
import type { Span } from "../../../schemas/generated/types.ts";
import { coloursFor } from "./colours.ts";
import { durationWords, programEnd, programWords } from "./program-words.ts";
import { spanLine, spanWords } from "./span-lines.ts";
import { printLine, type Terminal } from "../terminal/terminal.ts";
import { folded, hasFailed, type Shown, type Tree } from "./tree-folds.ts";

/** Prints the tree. On a terminal, lines are cut to the width and only the first has time and id; `all` disables folding. */
export function printTree(terminal: Terminal, root: Tree, all: boolean): void {
  print(terminal, spanLine(terminal, root.span));
  printBranches(terminal, root, "", all);
}

function printBranches(terminal: Terminal, tree: Tree, before: string, all: boolean): void {
  const rows = [...(all ? tree.children.map((child) => ({ tree: child })) : folded(tree.children))];
  if (tree.cut === true) rows.push({ folded: `… the rest: substrate trace ${tree.span.span_id} --tree` });
  for (const [at, row] of rows.entries()) {
    const isLast = at === rows.length - 1;
    print(terminal, `${before}${isLast ? "└─ " : "├─ "}${lineOf(terminal, row)}`);
    if ("tree" in row) printBranches(terminal, row.tree, `${before}${isLast ? "   " : "│  "}`, all);
  }
}

function lineOf(terminal: Terminal, row: Shown): string {
  if ("folded" in row) return row.folded;
  const { span } = row.tree;
  const isNarrow = widthOf(terminal) !== undefined;
  if (span.event_type !== "exec") return isNarrow ? spanWords(terminal, span) : spanLine(terminal, span);
  const id = isNarrow ? [] : [span.span_id];
  return [...id, endWords(terminal, span), durationWords(span.duration_ms), programWords(span)]
    .filter((word) => word !== "")
    .join("  ");
}

function endWords(terminal: Terminal, span: Span): string {
  const end = programEnd(span);
  return hasFailed(span) ? coloursFor(terminal).red(end) : end;
}

function print(terminal: Terminal, line: string): void {
  const width = widthOf(terminal);
  printLine(terminal, width === undefined ? line : cutToWidth(line, width));
}

/** Width of the terminal in columns; undefined without a terminal, where lines are printed whole. */
function widthOf({ out }: Terminal): number | undefined {
  return out.isTTY === true && out.columns > 0 ? out.columns : undefined;
}

/** A colour sequence printed by the CLI: takes no column. */
const COLOUR = String.raw`\u001b\[[\d;]*m`;
const PIECES = new RegExp(`${COLOUR}|.`, "gsu");
const IS_COLOUR = new RegExp(`^${COLOUR}$`);
const END_OF_COLOUR = "\u001b[39m";

/** Combining characters, drawn over the character before: no column. */
const COMBINING = /^[\p{Mn}\p{Me}]$/u;

/** Drawn two columns wide (Unicode's East Asian Width W and F, and emoji). */
const WIDE =
  /^[\p{Emoji_Presentation}\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]$/u;

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
  return WIDE.test(piece) ? 2 : 1;
}
