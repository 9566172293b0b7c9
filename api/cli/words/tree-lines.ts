/** Draws the tree of a span. */
import type { Span } from "../../../schemas/generated/types.ts";
import { coloursFor } from "./colours.ts";
import { durationWords, programEnd, programWords } from "./program-words.ts";
import { spanLine, spanWords } from "./span-lines.ts";
import { cutToWidth, widthOf } from "../terminal/rows.ts";
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
  const isNarrow = widthOf(terminal.out) !== undefined;
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
  const width = widthOf(terminal.out);
  printLine(terminal, width === undefined ? line : cutToWidth(line, width));
}
