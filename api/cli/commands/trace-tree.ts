/** `substrate trace SPAN --tree`: a span and all below it. */
import type { Span, TraceReply } from "../../../schemas/generated/types.ts";
import { ask } from "../replies.ts";
import { spanLine } from "../span-lines.ts";
import { printJson, printLine, type Terminal } from "../terminal.ts";

/** The broker is asked for each span; a command can make as many connections as it likes. */
const MOST_SPANS = 2000;
const DEEPEST = 64;

type Node = {
  readonly span: Span;
  readonly children: readonly Node[];
  /** How many children are not shown, because there were too many before. */
  readonly left_out?: number;
};

export async function showTree(terminal: Terminal, id: string, json: boolean): Promise<number> {
  const room = { spans: MOST_SPANS };
  const tree = await grow(terminal, id, room, new Set());
  if (json) printJson(terminal, tree);
  else printTree(terminal, tree);
  return 0;
}

/** `seen` are the spans above: whoever names a parent may name any. */
async function grow(
  terminal: Terminal,
  id: string,
  room: { spans: number },
  seen: ReadonlySet<string>,
): Promise<Node> {
  const { span, children } = await ask<TraceReply>(terminal, `/v1/trace/${encodeURIComponent(id)}`);
  const above = new Set([...seen, span.span_id]);
  const nodes: Node[] = [];
  for (const child of children) {
    if (above.has(child.span_id)) continue;
    if (room.spans === 0 || above.size > DEEPEST)
      return { span, children: nodes, left_out: children.length - nodes.length };
    room.spans -= 1;
    nodes.push(await grow(terminal, child.span_id, room, above));
  }
  return { span, children: nodes };
}

function printTree(terminal: Terminal, root: Node): void {
  printLine(terminal, spanLine(terminal, root.span));
  printBranches(terminal, root, "");
}

function printBranches(terminal: Terminal, { children, left_out: more }: Node, before: string): void {
  for (const [at, child] of children.entries()) {
    const isLast = at === children.length - 1 && more === undefined;
    printLine(terminal, `${before}${isLast ? "└─ " : "├─ "}${spanLine(terminal, child.span)}`);
    printBranches(terminal, child, `${before}${isLast ? "   " : "│  "}`);
  }
  if (more !== undefined) printLine(terminal, `${before}└─ … ${more} more are not shown`);
}
